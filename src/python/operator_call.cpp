// SPDX-License-Identifier: Apache-2.0
// A call from Python: arguments by the schema, outputs made, launched without the GIL.
#include "python/operator_call.h"

#include "python/emulation.h"
#include "python/errors.h"
#include "python/framework.h"
#include "tilewright/device.h"
#include "tilewright/stream.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <optional>
#include <tuple>

namespace nb = nanobind;

namespace tilewright::python {
namespace {

nb::str to_str(std::string_view text) { return nb::str(text.data(), text.size()); }

/// As keywords in a call are: found in a dict by their addresses.
nb::object interned(std::string_view text) {
  PyObject* object = to_str(text).release().ptr();
  PyUnicode_InternInPlace(&object);
  return nb::steal(object);
}

void set_option(Arguments& arguments, std::string_view name, nb::handle value) {
  if (value.is_none()) return;  // the default
  if (PyBool_Check(value.ptr())) {
    arguments.set_option(name, value.ptr() == Py_True ? "true" : "false", SourceLoc{});
  } else if (PyUnicode_Check(value.ptr())) {
    arguments.set_option(name, nb::cast<std::string_view>(value), SourceLoc{});
  } else if (PyFloat_Check(value.ptr())) {
    arguments.set_option(name, PyFloat_AsDouble(value.ptr()), SourceLoc{});
  } else {  // integers, and whatever else prints as a value
    const nb::str text(value);
    arguments.set_option(name, std::string_view(text.c_str()), SourceLoc{});
  }
}

/// The devices that calls ran on, opened once.
const Device& cuda_device(int id) {
  static auto* const devices = new std::map<int, Device>();  // under the GIL; outlives Python
  const auto found = devices->find(id);
  if (found != devices->end()) return found->second;
  return devices->emplace(id, Device::open("cuda:" + std::to_string(id), SourceLoc{}))
      .first->second;
}

/// Whether two tensors differ in their addresses alone, or both are absent.
bool is_like(const Slot& slot, const std::optional<View>& view) {
  if (!slot.tensor || !view) return slot.tensor.has_value() == view.has_value();
  const View& mine = slot.tensor->view;
  return mine.type == view->type && mine.rank == view->rank && mine.shape == view->shape &&
         mine.stride == view->stride;
}

/// One call while it is made ready and run.
class Call {
 public:
  explicit Call(const OperatorCall& operator_call)
      : call_(operator_call),
        op_(operator_call.op()),
        arguments_(operator_call.defaults()),
        slots_(op_.schema.tensors.size()) {}

  /// Reads the arguments, makes the outputs and launches.
  void run(const Given& given);
  /// After run(): the same on the GPU again and again, without Python.
  double seconds_of(std::int64_t count);
  nb::object results() const;
  nb::dict named_results() const;

 private:
  const TensorSpec& spec(std::size_t index) const { return op_.schema.tensors[index]; }
  /// Optional outputs only on demand, or where options ask for them: given ones may.
  bool may_be_made(std::size_t index) const {
    return slots_[index].wanted || !options_.empty() ||
           spec(index).presence == Presence::required || spec(index).role == Role::inout;
  }
  void take(const Given& given);
  void make_outputs();
  bool is_result(std::size_t index) const {
    return slots_[index].tensor && (spec(index).role == Role::output || slots_[index].made);
  }
  void take_option(std::size_t index, nb::handle value);
  void take_tensor(std::size_t index, nb::handle value);
  void set_tensor(std::size_t index, nb::handle value);
  void check_place(std::size_t index) const;
  void run_on_gpu();
  void run_on_host();
  nb::object workspace(const Stream& queue);

  const OperatorCall& call_;
  const Operator& op_;
  Arguments arguments_;
  std::vector<Slot> slots_;               ///< one for each of the schema's tensors
  std::string options_;                   ///< those that are given
  const Framework* framework_ = nullptr;  ///< of the first tensor
  const Tensor* first_ = nullptr;
};

void Call::take(const Given& given) {
  const std::vector<std::size_t>& positional = call_.positional();
  if (given.positional.size() > positional.size()) {
    arguments_.fail("takes at most " + std::to_string(positional.size()) +
                        " tensors by position, not " + std::to_string(given.positional.size()) +
                        "; outputs and options are keywords",
                    SourceLoc{});
  }
  for (std::size_t i = 0; i < given.positional.size(); ++i)
    take_tensor(positional[i], given.positional[i]);
  const auto count = static_cast<std::ptrdiff_t>(slots_.size());
  for (std::size_t i = 0; i < given.keywords.size(); ++i) {
    const nb::handle key = PyTuple_GetItem(given.names.ptr(), static_cast<Py_ssize_t>(i));
    const std::ptrdiff_t index = call_.find(key);
    if (index < 0) {
      const auto name = nb::cast<std::string>(key);
      arguments_.set_option(name, "", SourceLoc{});  // throws: there is none of this name
    } else if (index < count) {
      take_tensor(static_cast<std::size_t>(index), given.keywords[i]);
    } else {
      take_option(static_cast<std::size_t>(index - count), given.keywords[i]);
    }
  }
}

void Call::take_option(std::size_t index, nb::handle value) {
  const std::string_view name = op_.schema.options[index].name;
  set_option(arguments_, name, value);
  options_ += static_cast<char>('0' + index);
  options_ += arguments_.text(name);
  options_ += '\n';
}

void Call::take_tensor(std::size_t index, nb::handle value) {
  if (value.is_none()) return;
  if (PyBool_Check(value.ptr()) && spec(index).role == Role::output) {
    slots_[index].wanted = value.ptr() == Py_True;
    return;
  }
  if (slots_[index].tensor) {
    arguments_.fail("'" + std::string(spec(index).name) + "' is given twice", SourceLoc{});
  }
  set_tensor(index, value);
}

void Call::set_tensor(std::size_t index, nb::handle value) {
  const Framework& framework = Framework::of(value);
  slots_[index].tensor = framework.read(value, spec(index));
  arguments_.set(spec(index).name, slots_[index].tensor->view, SourceLoc{});
  if (slots_[index].tensor->read_only && spec(index).role != Role::input) {
    arguments_.fail("'" + std::string(spec(index).name) + "' is read-only; it is written to",
                    SourceLoc{});
  }
  if (first_ == nullptr) {
    framework_ = &framework;
    first_ = &*slots_[index].tensor;
    return;
  }
  check_place(index);
}

void Call::check_place(std::size_t index) const {
  const Tensor& tensor = *slots_[index].tensor;
  if (tensor.place == first_->place &&
      (tensor.place == Place::host || tensor.device_id == first_->device_id))
    return;
  const auto where = [](const Tensor& each) {
    return each.place == Place::host ? std::string("the host's memory")
                                     : "cuda:" + std::to_string(each.device_id);
  };
  arguments_.fail("'" + std::string(spec(index).name) + "' is in " + where(tensor) +
                      ", the first tensor in " + where(*first_) + "; move them together",
                  SourceLoc{});
}

void Call::make_outputs() {
  bool missing = first_ == nullptr;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    missing |= !slots_[i].tensor && spec(i).role != Role::input && may_be_made(i);
  }
  if (!missing) return;
  if (first_ == nullptr) {
    arguments_.check(Arguments::Outputs::optional, SourceLoc{});
    arguments_.fail("no tensor is given; give the output that is to be written", SourceLoc{});
  }
  const auto outputs = call_.outputs_of(arguments_, slots_, options_, *framework_, *first_);
  for (std::size_t k = 0; k < outputs->specs.size(); ++k) {
    const OutputSpec& output = outputs->specs[k];
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (spec(i).name != output.name || slots_[i].tensor) continue;
      if (!slots_[i].wanted && !is_made(output, spec(i))) continue;
      std::optional<Maker>& maker = outputs->makers[k];
      if (!maker) maker = framework_->maker(output, *first_);
      set_tensor(i, framework_->make(*maker, *first_));
      slots_[i].made = true;
    }
  }
}

nb::object Call::workspace(const Stream& queue) {
  if (op_.workspace_bytes == nullptr) return nb::none();
  const std::int64_t bytes = op_.workspace_bytes(arguments_);
  if (bytes == 0) return nb::none();
  // What is made while a graph is captured is the graph's, zeroed at each replay: calls of the same
  // capture share it, nothing else does.
  struct Kept {
    std::uint64_t capture = 0;
    nb::object memory;
  };
  using Key = std::tuple<const Operator*, int, void*, std::int64_t, bool>;
  static auto* const kept = new std::map<Key, Kept>();  // under the GIL; outlives Python
  const std::uint64_t capture = queue.capture_id();
  Kept& mine = (*kept)[{&op_, first_->device_id, queue.handle(), bytes, capture != 0}];
  if (!mine.memory.is_valid() || mine.capture != capture)
    mine = {capture, framework_->zeros(bytes, first_->device_id)};
  arguments_.set_workspace({framework_->address(mine.memory), bytes});
  return mine.memory;
}

void Call::run_on_gpu() {
  const Device& device = cuda_device(first_->device_id);
  const Stream queue = Stream::wrap(device, framework_->stream(first_->device_id));
  const nb::object memory = workspace(queue);
  const nb::gil_scoped_release released;
  op_.launch(device, queue, arguments_);
  if (!framework_->uses_streams()) queue.synchronize();
}

void Call::run_on_host() {
  std::vector<detail::HostTensor> tensors;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].tensor) tensors.push_back({spec(i).name, spec(i).role, slots_[i].tensor->view});
  }
  std::vector<emu::Diagnostic> found;
  {
    const nb::gil_scoped_release released;
    found = run_in_emulator(op_, arguments_, tensors);
  }
  throw_if_interrupted();
  if (!found.empty()) throw Findings(std::move(found));
}

void Call::run(const Given& given) {
  take(given);
  make_outputs();
  if (first_->place == Place::host) {
    run_on_host();
  } else {
    run_on_gpu();
  }
}

double Call::seconds_of(std::int64_t count) {
  if (first_->place == Place::host) arguments_.fail("is timed on a GPU only", SourceLoc{});
  const Device& device = cuda_device(first_->device_id);
  const Stream queue = Stream::wrap(device, framework_->stream(first_->device_id));
  const nb::object memory = workspace(queue);
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < count; ++i) {
    Arguments arguments(call_.defaults());
    for (std::size_t k = 0; k < slots_.size(); ++k) {
      if (slots_[k].tensor) arguments.set(spec(k).name, slots_[k].tensor->view);
    }
    if (!memory.is_none()) arguments.set_workspace(arguments_.workspace(0));
    op_.launch(device, queue, arguments);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

nb::object Call::results() const {
  std::size_t count = 0, last = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (!is_result(i)) continue;
    last = i;
    ++count;
  }
  if (count == 0) return nb::none();
  if (count == 1) return slots_[last].tensor->owner;
  nb::list list;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (is_result(i)) list.append(slots_[i].tensor->owner);
  }
  return nb::tuple(list);
}

nb::dict Call::named_results() const {
  nb::dict dict;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (is_result(i)) dict[to_str(spec(i).name)] = slots_[i].tensor->owner;
  }
  return dict;
}

View described(const TensorSpec& spec, nb::handle description, std::size_t index) {
  const auto text = nb::cast<std::string>(description[0]);
  const std::optional<Type> type = type_from_name(text);
  if (!type) throw Error(ErrorKind::user, "tensor " + std::string(spec.name) + ": no type " + text);
  std::vector<std::int64_t> shape, stride;
  for (nb::handle extent : description[1])
    shape.push_back(nb::cast<std::int64_t>(extent));
  for (nb::handle step : description[2])
    stride.push_back(nb::cast<std::int64_t>(step));
  // An address apart from those of the others: the tensor has no memory.
  const std::uint64_t address = (static_cast<std::uint64_t>(index) + 1) << 48;
  return make_view(address, *type, shape, stride, SourceLoc{});
}

}  // namespace

OperatorCall::OperatorCall(const Operator& op) : op_(op), defaults_(op.schema) {
  const Schema& schema = op.schema;
  for (std::size_t i = 0; i < schema.tensors.size(); ++i) {
    if (schema.tensors[i].role != Role::output) positional_.push_back(i);
    keywords_[interned(schema.tensors[i].name)] = i;
  }
  for (std::size_t i = 0; i < schema.options.size(); ++i)
    keywords_[interned(schema.options[i].name)] = schema.tensors.size() + i;
}

std::ptrdiff_t OperatorCall::find(nb::handle keyword) const {
  PyObject* index = PyDict_GetItemWithError(keywords_.ptr(), keyword.ptr());
  return index == nullptr ? -1 : PyLong_AsSsize_t(index);
}

std::shared_ptr<const Outputs> OperatorCall::outputs_of(const Arguments& arguments,
                                                        std::span<const Slot> slots,
                                                        const std::string& options,
                                                        const Framework& framework,
                                                        const Tensor& first) const {
  constexpr std::size_t kMost = 8;  // a model calls an operator for few shapes
  for (const Seen& seen : seen_) {
    if (seen.options == options && seen.framework == &framework && seen.place == first.place &&
        seen.device_id == first.device_id &&
        std::equal(slots.begin(), slots.end(), seen.tensors.begin(), is_like))
      return seen.outputs;
  }
  arguments.check(Arguments::Outputs::optional, SourceLoc{});
  Outputs outputs{op_.outputs(arguments), {}};
  outputs.makers.resize(outputs.specs.size());
  Seen seen{{},          options,         &framework,
            first.place, first.device_id, std::make_shared<const Outputs>(std::move(outputs))};
  for (const Slot& slot : slots)
    seen.tensors.push_back(slot.tensor ? std::optional(slot.tensor->view) : std::nullopt);
  if (seen_.size() < kMost) {
    seen_.push_back(seen);
  } else {
    seen_[oldest_] = seen;
    oldest_ = (oldest_ + 1) % kMost;
  }
  return seen.outputs;
}

nb::object OperatorCall::call(const Given& given) const {
  Call call(*this);
  call.run(given);
  return call.results();
}

nb::dict OperatorCall::named(const Given& given) const {
  Call call(*this);
  call.run(given);
  return call.named_results();
}

double OperatorCall::seconds_in_cpp(std::int64_t count, const Given& given) const {
  Call call(*this);
  call.run(given);
  return call.seconds_of(count);
}

nb::list OperatorCall::outputs(const nb::dict& inputs, const nb::dict& options) const {
  Arguments arguments(defaults_);
  for (auto [key, value] : inputs) {
    const auto name = nb::cast<std::string>(key);
    const std::ptrdiff_t index = find(key);
    if (index < 0) arguments.find(name);  // throws: there is none of this name
    const auto i = static_cast<std::size_t>(index);
    arguments.set(name, described(op_.schema.tensors[i], value, i), SourceLoc{});
  }
  for (auto [key, value] : options)
    set_option(arguments, nb::cast<std::string_view>(key), value);
  arguments.check(Arguments::Outputs::optional, SourceLoc{});
  nb::list list;
  for (const OutputSpec& output : op_.outputs(arguments)) {
    if (output.making == Making::on_demand) continue;
    nb::list shape;
    for (std::int64_t extent : output.shape)
      shape.append(extent);
    list.append(nb::make_tuple(to_str(output.name), to_str(name(output.type)), nb::tuple(shape)));
  }
  return list;
}

}  // namespace tilewright::python
