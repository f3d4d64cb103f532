// SPDX-License-Identifier: Apache-2.0
// From a recorded kernel to a loaded one, and from views to the parameters of a launch.
#pragma once

#include "tilewright/kernel.h"
#include "tilewright/launch.h"
#include "tilewright/trace.h"
#include "tilewright/view.h"

namespace tilewright {

namespace ptx {
enum class LineInfo : std::uint8_t;
}  // namespace ptx
struct KernelSource;  // cache.h

/// Appends what a kernel traced with `arg` takes for this view: its address, then the dynamic
/// extents and strides. Throws Error(user) if the view does not have the facts of `arg`.
void pack(Parameters& parameters, const TensorArg& arg, const View& view,
          SourceLoc at = SourceLoc::here());

/// Appends the tensor map of a view, in the encoding of the device. Throws Error(user) as
/// tensor_map() does.
void pack(Parameters& parameters, const Device& device, const TensorMapArg& arg, const View& view,
          SourceLoc at = SourceLoc::here());

/// Assembles and loads a recorded kernel, without a cache. Emulated devices report source lines.
Kernel compile(const Device& device, Traced traced, const AssembleOptions& options = {},
               SourceLoc at = SourceLoc::here());

/// What a launch has to pack, one line a parameter in their order: "address A" (64 bits), "extent
/// A.M TYPE", "stride A.M TYPE", "scalar A TYPE", "tensor_map A" (128 bytes, aligned to 64) of
/// argument A of the body and mode M of its shape.
std::string recipe_text(std::span<const Param> params);

/// The text, the entry and the recipe of a recorded kernel, as KernelCache::get takes them from a
/// trace.
KernelSource source_of(Traced traced, ptx::LineInfo line_info);

}  // namespace tilewright
