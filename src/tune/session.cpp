// SPDX-License-Identifier: Apache-2.0
// Placing tensors on a device.
#include "tune/session.h"

#include "runtime/problem_shapes.h"

#include <algorithm>
#include <utility>

namespace tilewright::tune {
namespace {

constexpr std::int64_t kSlabBytes = std::int64_t{32} << 20;
constexpr std::int64_t kTableRows = 1024;
constexpr std::int64_t kPieceAlignment = 512;  // cuMemAlloc's, and that of frameworks

std::int64_t aligned(std::int64_t size_bytes) {
  return (size_bytes + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
}

/// Bytes of ones on a GPU, which are NaN in floats. The emulator itself knows which bytes were
/// never written; filling would hide them from it.
std::shared_ptr<const Buffer> allocate(const Device& device, std::int64_t size_bytes) {
  auto buffer = std::make_shared<const Buffer>(device, size_bytes);
  if (device.kind() == DeviceKind::cuda) buffer->fill(std::byte{0xff});
  return buffer;
}

Role role_of(const Schema& schema, std::string_view name) {
  for (const TensorSpec& spec : schema.tensors) {
    if (spec.name == name) return spec.role;
  }
  return Role::input;  // an unknown name: Arguments::set says so
}

bool names(const std::vector<Array>& arrays, std::string_view name) {
  return std::any_of(arrays.begin(), arrays.end(),
                     [name](const Array& array) { return array.name == name; });
}

void set_options(const Inputs& inputs, Arguments& arguments) {
  for (const auto& [name, value] : inputs.options)
    arguments.set_option(name, value);
}

/// The outputs that are to be computed. `arguments` holds the inputs.
std::vector<OutputSpec> chosen_outputs(const Inputs& inputs, const Arguments& arguments,
                                       const std::vector<std::string>& wanted) {
  const Schema& schema = inputs.op->schema;
  std::vector<OutputSpec> chosen;
  std::vector<OutputSpec> possible = inputs.op->outputs(arguments);
  for (const std::string& name : wanted) {
    const bool is_possible = std::any_of(possible.begin(), possible.end(),
                                         [&](const OutputSpec& each) { return each.name == name; });
    if (!is_possible && !names(inputs.arrays, name)) {
      throw Error(ErrorKind::user, std::string(schema.name) + ": " + name +
                                       " is no output of these inputs and options");
    }
  }
  for (OutputSpec& output : possible) {
    const auto spec =
        std::find_if(schema.tensors.begin(), schema.tensors.end(),
                     [&](const TensorSpec& each) { return each.name == output.name; });
    TW_ASSERT(spec != schema.tensors.end(), "an operator's outputs are tensors of its schema");
    const bool asked = std::find(wanted.begin(), wanted.end(), output.name) != wanted.end();
    const bool given = names(inputs.arrays, output.name);
    if (!given && (asked || is_made(output, *spec))) {
      chosen.push_back(std::move(output));
    }
  }
  return chosen;
}

void check_wanted(const Schema& schema, const std::vector<std::string>& wanted) {
  std::string outputs;
  for (const TensorSpec& spec : schema.tensors) {
    if (spec.role != Role::output) continue;
    outputs += (outputs.empty() ? "" : ", ") + std::string(spec.name);
  }
  for (const std::string& name : wanted) {
    if (role_of(schema, name) == Role::output) continue;
    std::string message(schema.name);
    message.append(": no output is named '").append(name).append("'; it has ").append(outputs);
    throw Error(ErrorKind::user, std::move(message));
  }
}

}  // namespace

Inputs make_problem_shapes(const Operator& op, const std::string& text) {
  const Problem problem = parse_problem(op.schema, text);
  return {&op, detail::make_input_shapes(op, problem), problem.options};
}

Inputs make_problem_inputs(const Operator& op, const std::string& text, std::uint64_t seed) {
  const Problem problem = parse_problem(op.schema, text);
  return {&op, make_inputs(op, problem, seed), problem.options};
}

DeviceAddress Slab::Piece::address() const {
  return size_bytes == 0 ? 0 : buffer->address() + static_cast<std::uint64_t>(offset_bytes);
}

void Slab::Piece::upload(std::span<const std::byte> bytes) const {
  if (kind == Kind::next_window) return;
  buffer->upload(bytes, offset_bytes);
  if (kind == Kind::own) return;
  const std::int64_t behind = buffer->size_bytes() - size_bytes;
  buffer->upload(bytes.first(static_cast<std::size_t>(behind)), size_bytes);
}

Slab::Piece Slab::take(std::string_view name, Type type, const std::vector<std::int64_t>& shape) {
  const std::int64_t size_bytes = storage_bytes(type, shape);
  const bool is_table = !is_integer(type) && !shape.empty() && shape.front() >= kTableRows;
  if (size_bytes <= most_bytes_ || !is_table) return take(size_bytes);
  const std::int64_t step = aligned(size_bytes / shape.front());
  const std::int64_t steps = size_bytes / 4 / step;
  auto windows = std::find_if(windows_.begin(), windows_.end(),
                              [name](const Windows& each) { return each.name == name; });
  Piece::Kind kind = Piece::Kind::next_window;
  if (windows == windows_.end()) {
    windows_.push_back({std::string(name), allocate(device_, size_bytes + steps * step)});
    windows = std::prev(windows_.end());
    kind = Piece::Kind::window;
  }
  return {windows->buffer, windows->taken++ % (steps + 1) * step, size_bytes, kind};
}

Slab::Piece Slab::take(std::int64_t size_bytes) {
  if (size_bytes >= kSlabBytes) return {allocate(device_, size_bytes), 0, size_bytes};
  if (buffer_ == nullptr || used_bytes_ + size_bytes > kSlabBytes) {
    buffer_ = allocate(device_, kSlabBytes);
    used_bytes_ = 0;
  }
  Piece piece{buffer_, used_bytes_, size_bytes};
  used_bytes_ += aligned(size_bytes);
  return piece;
}

Session::Session(const Device& device, const Inputs& inputs, const std::vector<std::string>& wanted,
                 Slab* slab)
    : op_(inputs.op), device_(device), arguments_(inputs.op->schema) {
  check_wanted(op_->schema, wanted);
  set_options(inputs, arguments_);
  for (const Array& array : inputs.arrays) {
    const Role role = role_of(op_->schema, array.name);
    add(array.name, role, array.type, array.shape, slab);
    tensors_.back().memory.upload(array.bytes);
  }
  arguments_.check(Arguments::Outputs::optional);
  if (op_->check_contents != nullptr) op_->check_contents(arguments_, inputs.arrays);
  for (const OutputSpec& output : chosen_outputs(inputs, arguments_, wanted)) {
    add(output.name, Role::output, output.type, output.shape, slab);
  }
  if (op_->workspace_bytes == nullptr) return;
  workspace_.emplace(device_, op_->workspace_bytes(arguments_));
  workspace_->fill(std::byte{0});
  arguments_.set_workspace({workspace_->address(), workspace_->size_bytes()});
}

void Session::add(std::string_view name, Role role, Type type,
                  const std::vector<std::int64_t>& shape, Slab* slab) {
  const std::int64_t size_bytes = storage_bytes(type, shape);
  Slab::Piece memory = slab ? slab->take(name, type, shape)
                            : Slab::Piece{allocate(device_, size_bytes), 0, size_bytes};
  const View view = make_view(memory.address(), type, shape);
  arguments_.set(name, view);
  tensors_.push_back({std::string(name), role, view, std::move(memory)});
}

std::vector<Array> Session::outputs() const {
  std::vector<Array> arrays;
  for (const Tensor& tensor : tensors_) {
    if (tensor.role == Role::input) continue;
    const auto shape =
        std::span(tensor.view.shape).first(static_cast<std::size_t>(tensor.view.rank));
    Array array = make_array(tensor.name, tensor.view.type, {shape.begin(), shape.end()});
    tensor.memory.buffer->download(array.bytes, tensor.memory.offset_bytes);
    arrays.push_back(std::move(array));
  }
  return arrays;
}

std::vector<Session::Place> Session::written() const {
  std::vector<Place> places;
  for (const Tensor& tensor : tensors_) {
    if (tensor.role != Role::input)
      places.push_back({tensor.name, tensor.memory.address(), tensor.memory.size_bytes});
  }
  return places;
}

std::int64_t Session::size_bytes() const {
  std::int64_t total = 0;
  for (const Tensor& tensor : tensors_)
    total += tensor.memory.kind == Slab::Piece::Kind::own ? tensor.memory.size_bytes : 0;
  return total;
}

Arguments unplaced_arguments(const Inputs& inputs, const std::vector<std::string>& wanted) {
  check_wanted(inputs.op->schema, wanted);
  Arguments arguments(inputs.op->schema);
  set_options(inputs, arguments);
  std::uint64_t address = std::uint64_t{1} << 32;
  const auto add = [&](std::string_view name, Type type, const std::vector<std::int64_t>& shape) {
    const View view = make_view(address, type, shape);
    arguments.set(name, view);
    address += (static_cast<std::uint64_t>(size_bytes(view)) / 4096 + 1) * 4096;
  };
  for (const Array& array : inputs.arrays)
    add(array.name, array.type, array.shape);
  arguments.check(Arguments::Outputs::optional);
  for (const OutputSpec& output : chosen_outputs(inputs, arguments, wanted)) {
    add(output.name, output.type, output.shape);
  }
  if (inputs.op->workspace_bytes != nullptr) {
    arguments.set_workspace({address, inputs.op->workspace_bytes(arguments)});
  }
  return arguments;
}

}  // namespace tilewright::tune
