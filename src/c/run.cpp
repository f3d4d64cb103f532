// SPDX-License-Identifier: Apache-2.0
// Operators in C: what they need, and their launch.
#include "c/handle.h"
#include "c/status.h"
#include "c/tensor.h"
#include "tilewright/diagnostic.h"
#include "tilewright/operators.h"
#include "tilewright/stream.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace {

using namespace tilewright;  // NOLINT(google-build-using-namespace): this file is the library's own
using c::guarded;
using c::require;

Arguments arguments_of(const Operator& op, const tw_call& call) {
  Arguments arguments(op.schema);
  if (call.argument_count > 0) require(call.arguments, "tw_call.arguments");
  for (const tw_argument& argument : std::span(call.arguments, call.argument_count)) {
    require(argument.name, "tw_argument.name");
    require(argument.tensor, argument.name);
    arguments.set(argument.name, c::view_of(*argument.tensor, argument.name), SourceLoc{});
  }
  if (call.option_count > 0) require(call.options, "tw_call.options");
  for (const tw_option& option : std::span(call.options, call.option_count)) {
    require(option.name, "tw_option.name");
    require(option.value, option.name);
    arguments.set_option(option.name, std::string_view(option.value), SourceLoc{});
  }
  return arguments;
}

const Operator& operator_of(const tw_call* call) {
  require(call, "tw_call");
  require(call->op, "tw_call.op");
  return find_operator(call->op, SourceLoc{});
}

tw_output output_of(const OutputSpec& spec) {
  tw_output output{};
  const c::DlType type = c::dl_type(spec.type);
  std::memcpy(output.name, spec.name.data(), std::min(spec.name.size(), sizeof output.name - 1));
  output.type_code = type.code;
  output.type_bits = type.bits;
  output.type_lanes = 1;
  output.ndim = static_cast<std::int32_t>(spec.shape.size());
  std::copy_n(spec.shape.begin(), std::min<std::size_t>(spec.shape.size(), 8), output.shape);
  return output;
}

}  // namespace

size_t tw_operator_count(void) { return operators().size(); }

const char* tw_operator_name(size_t index) {
  return index < operators().size() ? operators()[index]->schema.name.data() : nullptr;
}

tw_status tw_outputs(const tw_call* call, tw_output* outputs, size_t* count) {
  return guarded([&] {
    require(count, "tw_outputs");
    const Operator& op = operator_of(call);
    Arguments arguments = arguments_of(op, *call);
    arguments.check(Arguments::Outputs::optional, SourceLoc{});
    const std::vector<OutputSpec> specs = op.outputs(arguments);
    if (*count > 0) require(outputs, "tw_outputs");
    for (std::size_t i = 0; i < std::min(*count, specs.size()); ++i)
      outputs[i] = output_of(specs[i]);
    *count = specs.size();
  });
}

tw_status tw_workspace_bytes(const tw_call* call, int64_t* bytes) {
  return guarded([&] {
    require(bytes, "tw_workspace_bytes");
    const Operator& op = operator_of(call);
    Arguments arguments = arguments_of(op, *call);
    *bytes = op.workspace_bytes == nullptr ? 0 : op.workspace_bytes(arguments);
  });
}

tw_status tw_run(tw_device* device, const tw_call* call, void* stream) {
  std::string finding;
  const tw_status status = guarded([&] {
    require(device, "tw_run");
    const Operator& op = operator_of(call);
    Arguments arguments = arguments_of(op, *call);
    arguments.set_workspace({call->workspace, call->workspace_bytes});
    op.launch(device->device, Stream::wrap(device->device, stream), arguments);
    for (const emu::Diagnostic& found : device->device.take_findings()) {
      if (found.severity != emu::Severity::advice && finding.empty())
        finding = emu::to_string(found);
    }
  });
  return status == TW_OK && !finding.empty() ? c::fail(TW_FINDINGS, finding) : status;
}
