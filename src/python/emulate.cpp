// SPDX-License-Identifier: Apache-2.0
// tilewright.emulate: buffers copied in, one launch with checks, buffers copied back.
#include "python/emulate.h"

#include "python/emulation.h"
#include "python/errors.h"
#include "tilewright/emulator.h"
#include "tilewright/error.h"
#include "tilewright/module.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nanobind/stl/string.h>
#include <span>
#include <utility>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT(google-build-using-namespace): "name"_a

namespace tilewright::python {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::user, "emulate: " + what);
}

/// A buffer of Python's while it is used.
class HostBuffer {
 public:
  HostBuffer(nb::handle object, const std::string& argument) {
    if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_ANY_CONTIGUOUS) == 0) return;
    PyErr_Clear();
    refuse(argument + " has no contiguous buffer; give an array such as numpy.ascontiguousarray()");
  }
  HostBuffer(HostBuffer&& other) noexcept
      : buffer_(std::exchange(other.buffer_, Py_buffer{})), address(other.address) {}
  HostBuffer& operator=(HostBuffer&&) = delete;
  ~HostBuffer() {
    if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
  }
  std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(buffer_.buf), static_cast<std::size_t>(buffer_.len)};
  }
  bool writable() const { return buffer_.readonly == 0; }

 private:
  Py_buffer buffer_{};

 public:
  std::uint64_t address = 0;  ///< on the machine
};

template <typename T>
void put(std::span<std::byte> to, T value) {
  std::memcpy(to.data(), &value, std::min(to.size(), sizeof value));
}

/// A Python number as the parameter's type has it.
void put_number(nb::handle value, const emu::ParamSlot& slot, std::span<std::byte> to,
                const std::string& argument) {
  const bool real = PyFloat_Check(value.ptr());
  if (slot.type == f64 && PyNumber_Check(value.ptr()))
    return put(to, nb::cast<double>(nb::float_(value)));
  if (slot.type == f32 && PyNumber_Check(value.ptr()))
    return put(to, static_cast<float>(nb::cast<double>(nb::float_(value))));
  if (real || !PyLong_Check(value.ptr())) {
    refuse(argument + " is " + nb::cast<std::string>(nb::repr(value)) +
           " for a parameter of type " + std::string(name(slot.type)) +
           "; give an array (its address is passed), a number of the type, or bytes");
  }
  const std::int64_t bytes = std::min<std::int64_t>(slot.bytes, 8);
  const nb::object low = nb::borrow(value) & nb::int_(~std::uint64_t{0});
  const auto number = nb::cast<std::uint64_t>(low);
  const unsigned unused = static_cast<unsigned>(64 - 8 * bytes);
  const auto back = static_cast<std::int64_t>(number << unused) >> unused;
  const bool fits = nb::borrow(value).equal(nb::int_(back)) ||
                    nb::borrow(value).equal(nb::int_(number << unused >> unused));
  if (!fits) {
    refuse(argument + " is " + nb::cast<std::string>(nb::repr(value)) + ", which does not fit " +
           std::to_string(bytes) + " bytes");
  }
  put(to, number);
}

struct Request {
  ptx::Module module;
  emu::Launch launch;
  emu::Options options;
};

/// The entry that is named, or the only one.
std::string entry_of(const ptx::Module& module, const std::string& wanted) {
  std::string names;
  int count = 0;
  for (const ptx::Function& function : module.functions) {
    if (!function.entry) continue;
    if (function.name == wanted) return wanted;
    names += (names.empty() ? "" : ", ") + function.name;
    ++count;
  }
  if (count == 1 && wanted.empty()) return names;
  refuse((wanted.empty() ? "name an entry" : "no entry is named '" + wanted + "'") +
         std::string("; the PTX has ") + (names.empty() ? "none" : names));
}

/// Allocates and fills the buffers of the arguments, and packs the parameters.
std::vector<HostBuffer> place(emu::Machine& machine, emu::Launch& launch,
                              const nb::sequence& args) {
  const std::vector<emu::ParamSlot> slots = emu::parameters(launch.program, launch.entry);
  const std::size_t count = nb::len(args);
  if (count != slots.size()) {
    refuse(launch.entry + " has " + std::to_string(slots.size()) + " parameters, not " +
           std::to_string(count));
  }
  std::vector<HostBuffer> buffers;
  for (std::size_t i = 0; i < count; ++i) {
    const nb::object value = args[i];
    const std::string argument = "argument " + std::to_string(i);
    const auto end = static_cast<std::size_t>(slots[i].offset + slots[i].bytes);
    if (launch.params.size() < end) launch.params.resize(end);
    const std::span<std::byte> to = std::span(launch.params)
                                        .subspan(static_cast<std::size_t>(slots[i].offset),
                                                 static_cast<std::size_t>(slots[i].bytes));
    if (PyBytes_Check(value.ptr())) {
      const HostBuffer contents(value, argument);
      if (contents.bytes().size() != to.size()) {
        refuse(argument + " has " + std::to_string(contents.bytes().size()) +
               " bytes; the parameter has " + std::to_string(to.size()));
      }
      std::memcpy(to.data(), contents.bytes().data(), to.size());
    } else if (PyObject_CheckBuffer(value.ptr()) != 0 && nb::hasattr(value, "shape") &&
               nb::len(nb::object(value.attr("shape"))) > 0) {
      if (to.size() != 8) refuse(argument + " is an array; the parameter is no address");
      HostBuffer& buffer = buffers.emplace_back(value, argument);
      const auto bytes = static_cast<std::int64_t>(buffer.bytes().size());
      buffer.address = machine.allocate(std::max<std::int64_t>(bytes, 1), argument);
      machine.write(buffer.address, buffer.bytes());
      put(to, buffer.address);
    } else {
      put_number(nb::hasattr(value, "item") ? value.attr("item")() : value, slots[i], to, argument);
    }
  }
  return buffers;
}

nb::list instruction_list(const std::vector<emu::InstrCount>& instructions) {
  nb::list list;
  for (const emu::InstrCount& each : instructions) {
    nb::dict dict;
    dict["ptx_line"] = each.ptx_line;
    dict["instruction"] = each.instruction;
    dict["executions"] = each.executions;
    dict["divergent"] = each.divergent;
    dict["lanes"] = each.lanes;
    dict["sectors"] = each.sectors;
    dict["ideal_sectors"] = each.ideal_sectors;
    dict["wavefronts"] = each.wavefronts;
    dict["ideal_wavefronts"] = each.ideal_wavefronts;
    list.append(dict);
  }
  return list;
}

nb::dict dict_of(const emu::Counters& counters) {
  nb::dict dict;
  dict["warp_instructions"] = counters.warp_instructions;
  dict["thread_instructions"] = counters.thread_instructions;
  dict["global_read_bytes"] = counters.global_read_bytes;
  dict["global_written_bytes"] = counters.global_written_bytes;
  dict["shared_read_bytes"] = counters.shared_read_bytes;
  dict["shared_written_bytes"] = counters.shared_written_bytes;
  dict["local_bytes"] = counters.local_bytes;
  dict["async_bytes"] = counters.async_bytes;
  dict["atomics"] = counters.atomics;
  dict["tensor_ops"] = counters.tensor_ops;
  dict["instructions"] = instruction_list(counters.instructions);
  return dict;
}

emu::Dim3 dim_of(const nb::sequence& extents, const char* what) {
  std::array<std::uint32_t, 3> dims{1, 1, 1};
  if (nb::len(extents) > 3) refuse(std::string(what) + " has more than three extents");
  for (std::size_t i = 0; i < nb::len(extents); ++i) {
    std::int64_t extent = 0;
    if (!nb::try_cast(extents[i], extent) || extent < 1 || extent > 0x7fffffff) {
      refuse(std::string(what) + " has the extent " + nb::cast<std::string>(nb::repr(extents[i])) +
             "; it must be a positive integer");
    }
    dims[i] = static_cast<std::uint32_t>(extent);
  }
  return {dims[0], dims[1], dims[2]};
}

template <typename Enum>
Enum word_of(const nb::dict& how, const char* key) {
  const auto text = nb::cast<std::string>(how[key]);
  std::string words;
  for (int i = 0; i < 3; ++i) {
    const auto each = static_cast<Enum>(i);
    if (name(each) == text) return each;
    words += (words.empty() ? "" : ", ") + std::string(name(each));
  }
  refuse(std::string(key) + " is '" + text + "'; it must be one of " + words);
}

Request request_of(const std::string& ptx, const nb::dict& how) {
  Request request{ptx::parse(ptx, "ptx"), {}, {}};
  const auto target = nb::cast<std::string>(how["target"]);
  if (!target.empty()) request.module.target = ptx::parse_target(target, SourceLoc{});
  request.launch.entry = entry_of(request.module, nb::cast<std::string>(how["entry"]));
  request.launch.grid = dim_of(how["grid"], "grid");
  request.launch.block = dim_of(how["block"], "block");
  request.launch.cluster = dim_of(how["cluster"], "cluster");
  request.launch.dynamic_smem_bytes = nb::cast<std::int64_t>(how["smem_bytes"]);
  request.launch.cooperative = nb::cast<bool>(how["cooperative"]);
  request.options.checks = emu::parse_checks(nb::cast<std::string>(how["checks"]));
  request.options.seed = nb::cast<std::uint64_t>(how["seed"]);
  request.options.residency = word_of<emu::Residency>(how, "residency");
  request.options.delivery = word_of<emu::Delivery>(how, "delivery");
  request.options.divergence = word_of<emu::Divergence>(how, "divergence");
  const bool counted = nb::cast<bool>(how["counters"]);
  request.options.counters = counted ? emu::Counting::on : emu::Counting::off;
  return request;
}

/// `how` has every key that request_of reads: the package's emulate() fills it in.
nb::dict emulate(const std::string& ptx, const nb::sequence& args, const nb::dict& how) {
  Request request = request_of(ptx, how);
  emu::Machine machine(request.module.target);
  request.launch.program = machine.load(request.module);
  const std::vector<HostBuffer> buffers = place(machine, request.launch, args);
  emu::LaunchReport report;
  {
    const nb::gil_scoped_release released;
    report = machine.launch(request.launch, interruptible(request.options));
  }
  throw_if_interrupted();
  for (const HostBuffer& buffer : buffers) {
    if (buffer.writable()) machine.read(buffer.address, buffer.bytes());
  }
  nb::dict result;
  result["findings"] = finding_list(report.findings);
  result["counters"] = request.options.counters == emu::Counting::on
                           ? nb::object(dict_of(report.counters))
                           : nb::none();
  result["output"] = report.output;
  result["steps"] = report.steps;
  result["completed"] = report.completed;
  result["ok"] = report.ok();
  return result;
}

}  // namespace

void bind_emulate(nb::module_& module) {
  module.def("emulate", &emulate, "ptx"_a, "args"_a, "how"_a);
}

}  // namespace tilewright::python
