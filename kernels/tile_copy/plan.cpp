// SPDX-License-Identifier: Apache-2.0
// The host side of tile_copy: checks, access width, tile, grid.
#include "kernels/rows/rows.h"
#include "kernels/tile_copy/tile_copy.h"
#include "tilewright/tune.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>

namespace tilewright {
namespace {

[[noreturn]] void refuse(const std::string& what, SourceLoc at) {
  throw Error(ErrorKind::user, "tile_copy: " + what, at);
}

void check(const View& src, const View& dst, SourceLoc at) {
  if (src.rank != 2 || dst.rank != 2) {
    refuse("src is " + to_string(src) + " and dst " + to_string(dst) + "; both must have rank 2",
           at);
  }
  if (src.type != dst.type) {
    refuse("src has type " + std::string(name(src.type)) + " and dst " +
               std::string(name(dst.type)) + "; a copy does not convert",
           at);
  }
  int width = bits(src.type);
  if (width != 8 && width != 16 && width != 32 && width != 64) {
    refuse("elements of type " + std::string(name(src.type)) + " have " + std::to_string(width) +
               " bits; it copies 8, 16, 32 or 64",
           at);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (src.shape[i] != dst.shape[i]) {
      refuse(
          "src is " + to_string(src) + " and dst " + to_string(dst) + "; the shapes must be equal",
          at);
    }
  }
  for (const View* view : {&src, &dst}) {
    if (view->shape[1] > 1 && view->stride[1] != 1) {
      refuse((view == &src ? "src " : "dst ") + to_string(*view) + " has " +
                 std::to_string(view->stride[1]) + " as its last stride; it must be 1",
             at);
    }
  }
  if (overlaps_itself(dst))
    refuse("dst is " + to_string(dst) + ", whose elements overlap; they must be apart", at);
  if (overlap(src, dst)) refuse("src and dst overlap; they must be apart", at);
}

/// The matrix in units of `unit_bytes`; as one row if flat.
View in_units(const View& view, int unit_bytes, bool flat) {
  View units = view;
  int size = bits(view.type) / 8;
  units.type = unit_bytes == 1 ? b8 : unit_bytes == 2 ? b16 : b32;
  std::int64_t columns = flat ? view.shape[0] * view.shape[1] : view.shape[1];
  units.shape = {flat ? 1 : view.shape[0], columns * size / unit_bytes};
  units.stride = {view.stride[0] * size / unit_bytes, 1};
  if (units.shape[0] <= 1) units.stride[0] = units.shape[1];
  return units;
}

/// The largest access, up to 16 bytes, that divides every offset.
int vector_bytes(const View& src, const View& dst, bool flat) {
  std::int64_t size = bits(src.type) / 8;
  std::int64_t common = 16;
  std::int64_t row = flat ? src.shape[1] * src.shape[0] : src.shape[1];
  common = std::gcd(common, row * size);
  for (const View* view : {&src, &dst}) {
    common = std::gcd(common, static_cast<std::int64_t>(view->address & 15));
    if (!flat && view->shape[0] > 1) common = std::gcd(common, view->stride[0] * size);
  }
  return static_cast<int>(common);
}

bool rows_without_gaps(const View& view) {
  return view.shape[0] <= 1 || view.stride[0] == view.shape[1];
}

int threads_along_row(int threads, std::int64_t vectors_of_row) {
  int along = 1;
  while (along < threads && along < vectors_of_row)
    along *= 2;
  return along;
}

constexpr std::array<tune::KeySpec, 3> kKeys{
    {{"access"}, {"flat"}, {"bytes", tune::Match::nearest}}};
constexpr std::array kThreads{64, 128, 256, 512};
constexpr std::array kVectors{1, 2, 4, 8};
constexpr std::array<tune::Knob, 2> kKnobs{{{"threads", kThreads}, {"vectors", kVectors}}};
constexpr std::array<tune::Reducible, 2> kReducible{{{"M", 200}, {"N", 330}}};

/// Measured on an H200: one 16-byte access a thread, no shared memory.
tune::Config standard(const DeviceProperties&, const tune::Key& key) {
  return {128, static_cast<int>(std::clamp<std::int64_t>(16 / key[0], 1, 8))};
}
bool valid(const DeviceProperties&, const tune::Key&, const tune::Config& config) {
  const bool whole = config[0] >= 32 && config[0] <= 1024 && (config[0] & (config[0] - 1)) == 0;
  return whole && config[1] >= 1 && config[1] <= 16;
}
constexpr tune::Space kSpace{"tile_copy", kKeys, kKnobs, standard, valid, kReducible};

void choose_shape(TileCopyConfig& config, const DeviceProperties& device, const View& src) {
  const tune::Config chosen =
      tune::choose(kSpace, device, {config.vector_bytes, config.flat ? 1 : 0, size_bytes(src)});
  config.threads = chosen[0];
  config.vectors = chosen[1];
}

void choose_threads(TileCopyConfig& config, const TileCopyOptions& options, SourceLoc at) {
  if (options.threads == 0) return;
  if (options.threads < 32 || options.threads > 1024 || options.threads % 32 != 0) {
    refuse(
        "threads=" + std::to_string(options.threads) + "; it must be a multiple of 32 up to 1024",
        at);
  }
  config.threads = options.threads;
}

void choose_rows(TileCopyConfig& config, const TileCopyOptions& options, SourceLoc at) {
  if (options.tile_m == 0) return;
  int rows_at_once = config.threads / config.threads_n;
  bool whole = options.tile_m > 0 && options.tile_m % rows_at_once == 0;
  if (!whole || options.tile_m / rows_at_once > 16) {
    refuse("tile_m=" + std::to_string(options.tile_m) + " with " + std::to_string(rows_at_once) +
               " rows of threads; it must be a multiple of that, at most 16 times it",
           at);
  }
  config.vectors = options.tile_m / rows_at_once;
}

}  // namespace

std::string to_string(const TileCopyConfig& config) {
  return std::string(config.method == CopyMethod::direct ? "direct" : "async") +
         " v=" + std::to_string(config.vector_bytes) + " t=" + std::to_string(config.threads) +
         "/" + std::to_string(config.threads_n) + " k=" + std::to_string(config.vectors) +
         " s=" + std::to_string(config.stages) +
         " c=" + std::to_string(static_cast<int>(config.cache)) + (config.flat ? " flat" : "");
}

TileCopyPlan plan_tile_copy(const DeviceProperties& device, const View& src, const View& dst,
                            const TileCopyConfig& config, SourceLoc at) {
  check(src, dst, at);
  TileCopyPlan plan;
  plan.config = config;
  int unit_bytes = std::min(config.vector_bytes, 4);
  plan.src = in_units(src, unit_bytes, config.flat);
  plan.dst = in_units(dst, unit_bytes, config.flat);
  // Everything but type and alignment stays a parameter: one specialisation serves all shapes.
  plan.src_arg = tensor_arg(plan.src, {.extents = 3, .strides = 1});
  plan.dst_arg = tensor_arg(plan.dst, {.extents = 3, .strides = 1});
  std::int64_t vectors = rows::ceil_div(plan.src.shape[1] * unit_bytes, config.vector_bytes);
  plan.tiles_n = rows::ceil_div(vectors, config.tile_n());
  plan.tiles_m = rows::ceil_div(plan.src.shape[0], config.tile_m());
  std::int64_t tiles = plan.tiles_m * plan.tiles_n;
  if (tiles > 2'147'483'647) {
    refuse(to_string(src) + " has " + std::to_string(tiles) +
               " tiles; a launch takes 2147483647: raise tile_m",
           at);
  }
  std::int64_t blocks = tiles;
  plan.launch.block.x = config.threads;
  if (config.method == CopyMethod::async) {
    plan.launch.dynamic_smem_bytes =
        std::int64_t{config.threads} * config.vectors * config.vector_bytes * config.stages;
    std::int64_t resident = std::min<std::int64_t>(
        2048 / config.threads,
        std::max<std::int64_t>(1, 227 * 1024 / (plan.launch.dynamic_smem_bytes + 1024)));
    blocks = std::min(tiles, std::max(device.sm_count, 1) * resident);
  }
  plan.launch.grid.x = static_cast<int>(blocks);
  return plan;
}

TileCopyPlan plan_tile_copy(const DeviceProperties& device, const View& src, const View& dst,
                            const TileCopyOptions& options, SourceLoc at) {
  check(src, dst, at);
  TileCopyConfig config;
  config.flat = options.tile_m == 0 && rows_without_gaps(src) && rows_without_gaps(dst);
  config.vector_bytes = vector_bytes(src, dst, config.flat);
  choose_shape(config, device, src);
  choose_threads(config, options, at);
  std::int64_t row_vectors = src.shape[1] * (bits(src.type) / 8) / config.vector_bytes;
  config.threads_n = config.flat ? config.threads : threads_along_row(config.threads, row_vectors);
  choose_rows(config, options, at);
  return plan_tile_copy(device, src, dst, config, at);
}

std::string TileCopyPlan::key() const {
  return "tile_copy/1 " + to_string(config) + " | " + to_string(src_arg) + " | " +
         to_string(dst_arg);
}

Parameters TileCopyPlan::parameters() const {
  Parameters parameters;
  pack(parameters, src_arg, src);
  pack(parameters, dst_arg, dst);
  parameters.add(static_cast<std::int32_t>(tiles_n));
  parameters.add(static_cast<std::int32_t>(tiles_m * tiles_n));
  return parameters;
}

PreparedLaunch prepare_tile_copy(const Device& device, const TileCopyPlan& plan, SourceLoc at) {
  return rows::prepare(device, plan, at);
}

void tile_copy(const Stream& stream, const View& src, const View& dst,
               const TileCopyOptions& options, SourceLoc at) {
  check(src, dst, at);
  if (size(src) == 0) return;
  const Device& device = stream.device();
  TileCopyPlan plan = plan_tile_copy(device.properties(), src, dst, options, at);
  prepare_tile_copy(device, plan, at).launch(stream, at);
}

}  // namespace tilewright
