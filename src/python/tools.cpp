// SPDX-License-Identifier: Apache-2.0
// What the program's commands layout, tune, cache and doctor do, as values of Python's.
#include "python/tools.h"

#include "python/emulate.h"
#include "python/emulation.h"
#include "tilewright/assembler.h"
#include "tilewright/cache.h"
#include "tilewright/dependent_launches.h"
#include "tilewright/device.h"
#include "tilewright/layout_eval.h"
#include "tilewright/layout_picture.h"
#include "tilewright/operators.h"
#include "tune/operator_tuner.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>
#include <optional>

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT(google-build-using-namespace): "name"_a

namespace tilewright::python {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorKind::user, what); }

LayoutAnswer evaluate(const std::string& expression) {
  return evaluate_layout_expression(expression);
}

std::string svg(const LayoutAnswer& answer, int bank_bits) {
  if (answer.thread_value) return draw_svg(*answer.thread_value);
  if (!answer.layout) refuse("layout: '" + answer.text + "' is no layout, so there is no picture");
  if (bank_bits == 0) return draw_svg(*answer.layout);
  return draw_svg(*answer.layout, {CellColor::bank, bank_bits});
}

std::string table(const LayoutAnswer& answer) {
  if (answer.thread_value) return draw_text(*answer.thread_value);
  if (!answer.layout) refuse("layout: '" + answer.text + "' is no layout, so there is no picture");
  return draw_text(*answer.layout);
}

nb::list function_list() {
  nb::list list;
  for (const LayoutFunction& each : layout_functions())
    list.append(nb::make_tuple(each.name, each.parameters, each.meaning));
  return list;
}

void bind_layout(nb::module_& module) {
  nb::class_<LayoutAnswer>(module, "LayoutAnswer")
      .def_ro("text", &LayoutAnswer::text)
      .def_prop_ro("is_layout",
                   [](const LayoutAnswer& answer) {
                     return answer.layout.has_value() || answer.thread_value.has_value();
                   })
      .def("svg", &svg, "bank_bits"_a = 0)
      .def("table", &table);
  module.def("layout", &evaluate);
  module.def("layout_functions", &function_list);
}

nb::dict dict_of(const CacheEntry& entry) {
  nb::dict dict;
  dict["file"] = entry.file;
  dict["size_bytes"] = entry.size_bytes;
  dict["modified_s"] = entry.modified_s;
  dict["target"] = entry.target;
  dict["assembler"] = entry.assembler;
  dict["entry"] = entry.entry;
  dict["problem"] = entry.problem;
  return dict;
}

nb::list list_of(const std::vector<CacheEntry>& entries) {
  nb::list list;
  for (const CacheEntry& entry : entries)
    list.append(dict_of(entry));
  return list;
}

nb::dict counters() {
  const CacheCounters counters = KernelCache::global().counters();
  nb::dict dict;
  dict["memory_hits"] = counters.memory_hits;
  dict["bundle_hits"] = counters.bundle_hits;
  dict["front_hits"] = counters.front_hits;
  dict["ptx_hits"] = counters.ptx_hits;
  dict["assembled"] = counters.assembled;
  dict["waited"] = counters.waited;
  dict["rejected"] = counters.rejected;
  dict["verified"] = counters.verified;
  return dict;
}

/// Empty: there is none on disk.
std::string cache_directory() {
  const CacheOptions& options = KernelCache::global().options();
  if (!options.disk) return {};
  return options.directory.empty() ? default_cache_directory() : options.directory;
}

void bind_cache(nb::module_& module) {
  module.def("cache_counters", &counters);
  module.def("cache_directory", &cache_directory);
  module.def("cache_list", [] { return list_of(KernelCache::global().list()); });
  module.def("cache_verify", [] { return list_of(KernelCache::global().verify()); });
  module.def("cache_clear", [] { return KernelCache::global().clear(); });
  module.def("cache_compiled", [] { return KernelCache::global().compiled(); });
  module.def("cache_warnings", [] { return KernelCache::global().warnings(); });
  module.def("cache_add_bundle", [](const std::string& path) {
    KernelCache::global().add(Bundle::open(path, SourceLoc{}));
  });
}

nb::dict dict_of(const AssemblerInfo& info) {
  nb::dict dict;
  dict["name"] = info.name;
  dict["version"] = info.version;
  dict["path"] = info.path;
  dict["usable"] = info.usable;
  dict["reason"] = info.reason;
  return dict;
}

nb::dict device_dict(const std::string& id) {
  nb::dict dict;
  dict["id"] = id;
  dict["problem"] = "";
  try {
    const Device device = Device::open(id, SourceLoc{});
    const DeviceProperties& properties = device.properties();
    dict["name"] = properties.name;
    dict["target"] = ptx::to_string(properties.target);
    dict["multiprocessors"] = properties.sm_count;
    dict["memory_bytes"] = properties.memory_bytes;
    dict["driver_version"] = properties.driver_version;
  } catch (const Error& error) {  // reported, not fatal: that is what it is asked for
    dict["problem"] = error.message();
  }
  return dict;
}

nb::dict doctor() {
  nb::list devices, assemblers;
  for (int i = 0; i < Device::cuda_count(); ++i)
    devices.append(device_dict("cuda:" + std::to_string(i)));
  for (const AssemblerInfo& info : tilewright::assemblers())
    assemblers.append(dict_of(info));
  nb::dict dict;
  dict["version"] = TILEWRIGHT_VERSION;
  dict["compiler"] = TILEWRIGHT_COMPILER;
  dict["operators"] = operators().size();
  dict["devices"] = devices;
  dict["no_cuda"] = Device::why_no_cuda();
  dict["assemblers"] = assemblers;
  dict["linker"] = dict_of(linker());
  dict["cache_directory"] = cache_directory();
  dict["cache_warnings"] = KernelCache::global().warnings();
  return dict;
}

nb::list list_of(const std::vector<tune::Tuned>& all, bool measured) {
  nb::list list;
  for (const tune::Tuned& tuned : all) {
    nb::dict search;
    search["space"] = tuned.space->name;
    search["key"] = tune::key_text(*tuned.space, tuned.key);
    search["problems"] = tuned.problems;
    nb::list candidates;
    for (const tune::Trial& trial : tuned.result.trials) {
      nb::dict candidate;
      candidate["config"] = tune::config_text(*tuned.space, trial.config);
      const std::string_view fate = measured            ? tune::name(trial.fate)
                                    : trial.why.empty() ? "assembled"
                                                        : "refused";
      candidate["fate"] = nb::str(fate.data(), fate.size());
      candidate["us"] = trial.median_us;
      candidate["why"] = trial.why;
      candidate["note"] = trial.note;
      candidates.append(candidate);
    }
    search["candidates"] = candidates;
    if (measured) search["winner"] = tune::config_text(*tuned.space, tuned.result.best().config);
    list.append(search);
  }
  return list;
}

nb::list tune(const std::string& name, std::vector<std::string> problems, const std::string& device,
              double budget_s, const std::string& dry_target) {
  const Operator& op = find_operator(name, SourceLoc{});
  tune::TuneRequest request{.op = &op, .problems = std::move(problems)};
  if (request.problems.empty())
    request.problems.assign(op.bench_problems.begin(), op.bench_problems.end());
  request.search.budget_s = budget_s;
  std::vector<tune::Tuned> all;
  {
    const nb::gil_scoped_release released;
    all = dry_target.empty()
              ? tune::tune_operator(Device::open(device, SourceLoc{}), request)
              : tune::list_candidates(ptx::parse_target(dry_target, SourceLoc{}), request);
  }
  return list_of(all, dry_target.empty());
}

/// A context manager: `with` keeps a DependentLaunches alive on the thread that enters.
class DependentBlock {
 public:
  DependentBlock& enter() {
    wanted_.emplace();
    return *this;
  }
  void exit(const nb::args&) { wanted_.reset(); }

 private:
  std::optional<DependentLaunches> wanted_;
};

void bind_dependent_launches(nb::module_& module) {
  nb::class_<DependentBlock>(module, "DependentLaunches",
                             "Operators called in its block, `with "
                             "tilewright.dependent_launches():`, begin before the kernel\n"
                             "in front of them on the stream ends and wait for it before they "
                             "touch memory; in graphs, too.")
      .def(nb::init<>())
      .def("__enter__", &DependentBlock::enter, nb::rv_policy::reference)
      .def("__exit__", &DependentBlock::exit);
}

void use_emulator(const std::string& target, const std::string& checks, std::uint64_t seed) {
  emu::Options options;
  options.checks = emu::parse_checks(checks);
  options.seed = seed;
  set_emulator(target, options);
}

}  // namespace

void bind_tools(nb::module_& module) {
  bind_layout(module);
  bind_cache(module);
  bind_emulate(module);
  bind_dependent_launches(module);
  module.def("doctor", &doctor);
  module.def("tune", &tune, "op"_a, "problems"_a, "device"_a, "budget_s"_a, "dry_target"_a);
  module.def("use_emulator", &use_emulator, "target"_a, "checks"_a, "seed"_a);
}

}  // namespace tilewright::python
