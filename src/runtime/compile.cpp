// SPDX-License-Identifier: Apache-2.0
// Parameters of a launch in the order in which a trace declared them.
#include "tilewright/compile.h"

#include "runtime/backend.h"
#include "tilewright/cache.h"
#include "tilewright/module.h"

#include <algorithm>
#include <string>

namespace tilewright {

namespace {

/// What no kernel could read or write there.
std::string bad_address(const View& view) {
  if (size(view) == 0) return "";
  if (view.address == 0) return "its address is 0; give it memory of the device";
  const int elem = std::max(storage_bits(view.type) / 8, 1);
  if (view.address % static_cast<std::uint64_t>(elem) == 0) return "";
  return "its address is no multiple of the element's " + std::to_string(elem) +
         " bytes; give it one that is";
}

}  // namespace

void pack(Parameters& parameters, const TensorArg& arg, const View& view, SourceLoc at) {
  const std::string nowhere = bad_address(view);
  if (!nowhere.empty()) {
    throw Error(ErrorKind::user, "launch with " + to_string(view) + ": " + nowhere, at);
  }
  std::string why = mismatch(arg, view);
  if (!why.empty()) {
    throw Error(ErrorKind::user,
                "launch with " + to_string(view) + ": " + why +
                    "; make another specialisation for such arguments",
                at);
  }
  parameters.add(view.address);
  for (int i = 0; i < view.rank; ++i) {
    const Int& extent = arg.shape[i].value();
    if (extent.is_static()) continue;
    std::int64_t value = view.shape[static_cast<std::size_t>(i)];
    if (is_short_extent(extent)) {
      parameters.add(static_cast<std::int32_t>(value));
    } else {
      parameters.add(value);
    }
  }
  for (int i = 0; i < view.rank; ++i) {
    if (!arg.stride[i].value().is_static())
      parameters.add(view.stride[static_cast<std::size_t>(i)]);
  }
}

void pack(Parameters& parameters, const Device& device, const TensorMapArg& arg, const View& view,
          SourceLoc at) {
  constexpr std::size_t kAlignment = 64;  // CUtensorMap, CUDA driver API
  parameters.add_bytes(device.backend().encode(tensor_map(arg, view, at), at), kAlignment);
}

Kernel compile(const Device& device, Traced traced, const AssembleOptions& options, SourceLoc at) {
  bool emulated = device.kind() == DeviceKind::emulated;
  std::string text = ptx::print(traced.module(), emulated ? ptx::LineInfo::on : ptx::LineInfo::off);
  return load_ptx(device, text, traced.entry, options, at);
}

std::string recipe_text(std::span<const Param> params) {
  std::string text;
  for (const Param& param : params) {
    std::string argument = std::to_string(param.argument);
    std::string mode = argument + "." + std::to_string(param.mode);
    std::string type(name(param.type));
    switch (param.kind) {
      case Param::Kind::address:
        text += "address " + argument;
        break;
      case Param::Kind::extent:
        text.append("extent ").append(mode).append(" ").append(type);
        break;
      case Param::Kind::stride:
        text.append("stride ").append(mode).append(" ").append(type);
        break;
      case Param::Kind::scalar:
        text.append("scalar ").append(argument).append(" ").append(type);
        break;
      case Param::Kind::tensor_map:
        text += "tensor_map " + argument;
        break;
    }
    text += "\n";
  }
  return text;
}

KernelSource source_of(Traced traced, ptx::LineInfo line_info) {
  return {ptx::print(traced.module(), line_info), std::move(traced.entry),
          recipe_text(traced.params)};
}

}  // namespace tilewright
