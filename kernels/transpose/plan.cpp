// SPDX-License-Identifier: Apache-2.0
// The host side of transpose: checks, views of three modes, grid.
#include "kernels/rows/grid_division.h"
#include "kernels/transpose/transpose.h"
#include "tilewright/stream.h"

#include <algorithm>
#include <array>

namespace tilewright {
namespace {

/// [M, N] as [1, M, N], its elements as bits.
View as_batch(const View& view, std::string_view which, const rows::Caller& caller) {
  int width = bits(view.type);
  if (width != 8 && width != 16 && width != 32 && width != 64) {
    caller.refuse("elements of type " + std::string(name(view.type)) + " have " +
                  std::to_string(width) + " bits; it takes 8, 16, 32 or 64");
  }
  if (view.rank != 2 && view.rank != 3) {
    caller.refuse(std::string(which) + " is " + to_string(view) + "; it must have rank 2 or 3");
  }
  View batch = view;
  batch.type = width == 8 ? b8 : width == 16 ? b16 : width == 32 ? b32 : b64;
  if (view.rank == 2) {
    batch.rank = 3;
    batch.shape = {1, view.shape[0], view.shape[1]};
    batch.stride = {view.shape[0] * view.stride[0], view.stride[0], view.stride[1]};
  }
  if (batch.shape[2] > 1 && batch.stride[2] != 1) {
    caller.refuse(std::string(which) + " " + to_string(view) + " has " +
                  std::to_string(batch.stride[2]) + " as its last stride; it must be 1");
  }
  batch.stride[2] = 1;
  return batch;
}

}  // namespace

int TransposeConfig::tile_m() const {
  return method == TransposeMethod::shared ? down * access_elems() : threads / across * access;
}
int TransposeConfig::tile_n() const {
  if (method == TransposeMethod::direct) return across * access;
  return across * word_elems() - (whole_words ? 0 : word_elems() - 1);
}

/// All threads read as many rows.
int TransposeConfig::smem_rows() const {
  const int together = std::max(access_elems(), threads / across);
  return (tile_m() + rows_before() + together - 1) / together * together;
}
int TransposeConfig::smem_bytes() const {
  return smem_rows() / access_elems() * (access_elems() * row_words() + 1) * word_bytes();
}

std::string to_string(const TransposeConfig& c) {
  const std::string group = " g=" + std::to_string(c.group);
  if (c.method == TransposeMethod::direct) {
    return "direct v=" + std::to_string(c.access) + " t=" + std::to_string(c.threads) + "/" +
           std::to_string(c.across) + group;
  }
  return "shared t=" + std::to_string(c.threads) + "/" + std::to_string(c.across) + "/" +
         std::to_string(c.down) + (c.whole_words ? " words" : "") +
         (c.whole_accesses ? " accesses" : "") + group;
}

TransposePlan plan_transpose(const DeviceProperties& device, const View& src, const View& dst,
                             SourceLoc at) {
  rows::Caller caller{"transpose", at};
  if (src.type != dst.type) {
    caller.refuse("src has type " + std::string(name(src.type)) + " and dst " +
                  std::string(name(dst.type)) + "; a transpose does not convert");
  }
  TransposePlan plan;
  plan.src = as_batch(src, "src", caller);
  plan.dst = as_batch(dst, "dst", caller);
  const auto& from = plan.src.shape;
  const auto& to = plan.dst.shape;
  if (src.rank != dst.rank || from[0] != to[0] || from[1] != to[2] || from[2] != to[1]) {
    caller.refuse("src is " + to_string(src) + " and dst " + to_string(dst) +
                  "; the last two extents must change places");
  }
  rows::check_distinct(dst, "dst", caller);
  rows::check_apart(src, "src", dst, "dst", caller);
  constexpr DynamicModes kAllButLast{.extents = 0b111, .strides = 0b011};
  plan.src_arg = tensor_arg(plan.src, kAllButLast);
  plan.dst_arg = tensor_arg(plan.dst, kAllButLast);
  plan.config = choose_transpose(device, plan.src, plan.dst);
  const TransposeConfig& config = plan.config;
  const std::int64_t covered =
      from[1] + (config.method == TransposeMethod::shared ? config.rows_before() : 0);
  const int group = std::max(1, config.group);
  plan.tiles_m = rows::ceil_div(rows::ceil_div(covered, config.tile_m()), group) * group;
  plan.tiles_n = rows::ceil_div(from[2], config.tile_n());
  std::int64_t tiles = from[0] * plan.tiles_m * plan.tiles_n;
  if (tiles > 2'147'483'647) {
    caller.refuse(to_string(src) + " has " + std::to_string(tiles) +
                  " tiles; a launch takes 2147483647");
  }
  plan.launch.grid.x = static_cast<int>(tiles);
  plan.launch.block.x = config.threads;
  if (config.method == TransposeMethod::shared)
    plan.launch.dynamic_smem_bytes = config.smem_bytes();
  return plan;
}

std::string TransposePlan::key() const {
  return "transpose/3 " + to_string(config) + " | " + to_string(src_arg) + " | " +
         to_string(dst_arg);
}

Parameters TransposePlan::parameters() const {
  Parameters parameters;
  pack(parameters, src_arg, src);
  pack(parameters, dst_arg, dst);
  parameters.add(rows::divisor_parameter(order()));
  parameters.add(rows::divisor_parameter(tiles_m * tiles_n));
  return parameters;
}

void transpose(const Stream& stream, const View& src, const View& dst, SourceLoc at) {
  TransposePlan plan = plan_transpose(stream.device().properties(), src, dst, at);
  if (size(src) == 0) return;
  rows::prepare(stream.device(), plan, at).launch(stream, at);
}

}  // namespace tilewright
