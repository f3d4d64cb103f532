// SPDX-License-Identifier: Apache-2.0
// The host side of strided_copy: checks, modes that merge, items of a thread, grid.
#include "kernels/rows/grid_division.h"
#include "kernels/rows/rows.h"
#include "kernels/strided_copy/strided_copy.h"
#include "tilewright/stream.h"
#include "tilewright/tune.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace tilewright {
namespace {

constexpr int kMostRank = 5;
constexpr std::int64_t kAccessBytes = 16;
constexpr std::int64_t kMostShort = std::int64_t{1} << 30;  // items: a grid's threads fit 31 bits
constexpr std::int64_t kMostBlocks = 2'147'483'647;         // CUDA Programming Guide: grid.x
constexpr int kMostThreadBytes = 256;                       // of a thread's items, in registers

void check_types(const View& src, const View& dst, const rows::Caller& caller) {
  if (src.type == dst.type) {
    const int width = bits(src.type);
    if (width == 8 || width == 16 || width == 32 || width == 64) return;
    caller.refuse("elements of type " + std::string(name(src.type)) + " have " +
                  std::to_string(width) + " bits; it takes 8, 16, 32 or 64");
  }
  const bool from = rows::is_real_type(src.type) || src.type == e4m3 || src.type == e5m2;
  if (from && rows::is_real_type(dst.type)) return;
  caller.refuse("src has type " + std::string(name(src.type)) + " and dst " +
                std::string(name(dst.type)) +
                "; a cast goes from bf16, f16, f32, e4m3 or e5m2 to bf16, f16 or f32");
}

void check_view(const View& view, std::string_view which, const rows::Caller& caller) {
  if (view.rank < 1 || view.rank > kMostRank) {
    caller.refuse(std::string(which) + " is " + to_string(view) + "; it must have rank 1 to 5");
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(view.rank); ++i) {
    if (view.shape[i] <= 1 || view.stride[i] >= 0 || size(view) == 0) continue;
    caller.refuse(std::string(which) + " " + to_string(view) + " has a stride of " +
                  std::to_string(view.stride[i]) + "; it must be at least 0");
  }
  const std::int64_t elem_bytes = bytes(view.type);
  if (size(view) > 0 && view.address % static_cast<std::uint64_t>(elem_bytes) != 0) {
    caller.refuse("the address of " + std::string(which) + " is not a multiple of " +
                  std::to_string(elem_bytes) + ", the bytes of its elements");
  }
}

/// A mode of both sides.
struct Mode {
  std::int64_t extent, src, dst;
};

/// Modes of extents other than 1, the widest strides of dst first.
std::vector<Mode> sorted_modes(const View& src, const View& dst) {
  std::vector<Mode> modes;
  for (std::size_t i = 0; i < static_cast<std::size_t>(src.rank); ++i)
    if (src.shape[i] != 1) modes.push_back({src.shape[i], src.stride[i], dst.stride[i]});
  std::stable_sort(modes.begin(), modes.end(),
                   [](const Mode& a, const Mode& b) { return a.dst > b.dst; });
  return modes;
}

bool nests(std::int64_t outer, std::int64_t extent, std::int64_t inner) {
  return outer % extent == 0 && outer / extent == inner;
}

/// As coalesce(), of two layouts at once: neighbours merge where they do on both sides.
std::vector<Mode> coalesced(const std::vector<Mode>& modes) {
  std::vector<Mode> merged;
  for (const Mode& mode : modes) {
    const bool continues = !merged.empty() && nests(merged.back().src, mode.extent, mode.src) &&
                           nests(merged.back().dst, mode.extent, mode.dst);
    if (!continues) merged.push_back({1, 0, 0});
    merged.back() = {merged.back().extent * mode.extent, mode.src, mode.dst};
  }
  if (merged.empty()) merged.push_back({1, 1, 1});
  return merged;
}

View with_modes(const View& view, const std::vector<Mode>& modes, std::int64_t Mode::*stride) {
  View out{.address = view.address, .type = view.type, .rank = static_cast<int>(modes.size())};
  for (std::size_t i = 0; i < modes.size(); ++i) {
    out.shape[i] = modes[i].extent;
    out.stride[i] = modes[i].*stride;
  }
  return out;
}

/// Both sides with the modes that are left.
struct Sides {
  View src, dst;
};
Sides checked(const View& src, const View& dst, SourceLoc at) {
  const rows::Caller caller{"strided_copy", at};
  check_types(src, dst, caller);
  check_view(src, "src", caller);
  check_view(dst, "dst", caller);
  const auto extents = src.shape.begin();
  if (src.rank != dst.rank || !std::equal(extents, extents + src.rank, dst.shape.begin())) {
    caller.refuse("src is " + to_string(src) + " and dst " + to_string(dst) +
                  "; the shapes must be equal");
  }
  const bool empty = size(src) == 0;
  const std::vector<Mode> modes = empty ? std::vector<Mode>{{0, 1, 1}} : sorted_modes(src, dst);
  if (overlaps_itself(with_modes(dst, modes, &Mode::dst))) {
    caller.refuse("dst is " + to_string(dst) + ", whose elements overlap; they must be apart");
  }
  rows::check_apart(src, "src", dst, "dst", caller);
  const std::vector<Mode> left = coalesced(modes);
  return {with_modes(src, left, &Mode::src), with_modes(dst, left, &Mode::dst)};
}

std::size_t innermost(const View& view) { return static_cast<std::size_t>(view.rank - 1); }

/// Elements of the widest access that divides every offset of the view.
std::int64_t access_elems(const View& view) {
  if (view.stride[innermost(view)] != 1) return 1;
  const std::int64_t elem_bytes = bytes(view.type);
  std::int64_t common = std::gcd(kAccessBytes, static_cast<std::int64_t>(view.address & 15));
  for (std::size_t i = 0; i < innermost(view); ++i)
    common = std::gcd(common, view.stride[i] % kAccessBytes * elem_bytes);
  return common / elem_bytes;
}

/// Of an item: the widest access of either side, one of dst at most.
int widest_item(const Sides& sides) {
  std::int64_t elems = std::max(access_elems(sides.src), access_elems(sides.dst));
  elems = std::min(elems, kAccessBytes / bytes(sides.dst.type));
  while (elems > 1 && elems > sides.dst.shape[innermost(sides.dst)])
    elems /= 2;
  return static_cast<int>(elems);
}

constexpr std::array<tune::KeySpec, 5> kKeys{
    {{"src"}, {"dst"}, {"elems"}, {"rank"}, {"bytes", tune::Match::nearest}}};
constexpr std::array kElems{1, 2, 4, 8, 16};
constexpr std::array kItems{1, 2, 4, 8};
constexpr std::array kThreads{64, 128, 256, 512};
constexpr std::array<tune::Knob, 3> kKnobs{
    {{"elems", kElems}, {"items", kItems}, {"threads", kThreads}}};
constexpr std::array<tune::Reducible, 2> kReducible{{{"T", 200}, {"D", 330}}};

int item_bytes(const tune::Key& key, int elems) {
  return static_cast<int>(std::max(key[0], key[1])) * elems;
}

/// As tile_copy: 16 bytes of a thread in flight, in four items at most.
tune::Config standard(const DeviceProperties&, const tune::Key& key) {
  const int elems = static_cast<int>(key[2]);
  return {elems, std::clamp(static_cast<int>(kAccessBytes) / item_bytes(key, elems), 1, 4), 128};
}
bool valid(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  const auto [elems, items, threads, d, e, f, g, h] = config;
  const bool is_power = elems >= 1 && (elems & (elems - 1)) == 0;
  return is_power && elems <= key[2] && items >= 1 &&
         items * item_bytes(key, elems) <= kMostThreadBytes && threads >= 32 && threads <= 1024 &&
         threads % 32 == 0;
}
constexpr tune::Space kSpace{"strided_copy", kKeys, kKnobs, standard, valid, kReducible};

/// A mode stays in the code where its stride says how elements are accessed.
DynamicModes dynamic_modes(const View& view, bool wide) {
  const std::uint32_t all = (1U << view.rank) - 1;
  const std::int64_t stride = view.stride[innermost(view)];
  return {.extents = wide ? 0 : all, .strides = stride == 0 || stride == 1 ? all >> 1 : all};
}

StridedCopyPlan planned(const Sides& sides, const StridedCopyConfig& config, SourceLoc at) {
  StridedCopyPlan plan;
  plan.config = config;
  const bool casts = sides.src.type != sides.dst.type;
  plan.src = casts ? sides.src : rows::as_bits(sides.src);
  plan.dst = casts ? sides.dst : rows::as_bits(sides.dst);
  plan.config.ends = plan.dst.shape[innermost(plan.dst)] % config.elems != 0;
  plan.items = 1;
  for (int mode = 0; mode < plan.dst.rank; ++mode)
    plan.items *= plan.extent(mode);
  plan.config.wide = config.wide || plan.items > kMostShort;
  plan.src_arg = tensor_arg(plan.src, dynamic_modes(plan.src, plan.config.wide));
  plan.dst_arg = tensor_arg(plan.dst, dynamic_modes(plan.dst, plan.config.wide));
  const std::int64_t blocks =
      rows::ceil_div(plan.items, std::int64_t{config.threads} * config.items);
  if (blocks > kMostBlocks) {
    rows::Caller{"strided_copy", at}.refuse("dst is " + to_string(sides.dst) + " and takes " +
                                            std::to_string(blocks) +
                                            " blocks; a launch has 2147483647");
  }
  plan.launch.grid.x = static_cast<int>(blocks);
  plan.launch.block.x = config.threads;
  return plan;
}

}  // namespace

std::string to_string(const StridedCopyConfig& config) {
  return "e=" + std::to_string(config.elems) + " k=" + std::to_string(config.items) +
         " t=" + std::to_string(config.threads) + (config.ends ? " ends" : "") +
         (config.wide ? " wide" : "");
}

StridedCopyPlan plan_strided_copy(const DeviceProperties& device, const View& src, const View& dst,
                                  SourceLoc at) {
  const Sides sides = checked(src, dst, at);
  const tune::Config chosen = tune::choose(kSpace, device,
                                           {bytes(src.type), bytes(dst.type), widest_item(sides),
                                            sides.dst.rank, size_bytes(sides.dst)});
  return planned(sides, {.elems = chosen[0], .items = chosen[1], .threads = chosen[2]}, at);
}

StridedCopyPlan plan_strided_copy(const DeviceProperties&, const View& src, const View& dst,
                                  const StridedCopyConfig& config, SourceLoc at) {
  return planned(checked(src, dst, at), config, at);
}

std::int64_t StridedCopyPlan::extent(int mode) const {
  const std::int64_t elems = dst.shape[static_cast<std::size_t>(mode)];
  return mode + 1 == dst.rank ? rows::ceil_div(elems, config.elems) : elems;
}

std::string StridedCopyPlan::key() const {
  return "strided_copy/1 " + to_string(config) + " | " + to_string(src_arg) + " | " +
         to_string(dst_arg);
}

Parameters StridedCopyPlan::parameters() const {
  Parameters parameters;
  pack(parameters, src_arg, src);
  pack(parameters, dst_arg, dst);
  if (config.wide) {
    parameters.add(items);
    return parameters;
  }
  parameters.add(static_cast<std::int32_t>(items));
  for (int mode = 1; mode < dst.rank; ++mode)
    parameters.add(rows::divisor_parameter(extent(mode)));
  return parameters;
}

PreparedLaunch prepare_strided_copy(const Device& device, const StridedCopyPlan& plan,
                                    SourceLoc at) {
  return rows::prepare(device, plan, at);
}

void strided_copy(const Stream& stream, const View& src, const View& dst, SourceLoc at) {
  const StridedCopyPlan plan = plan_strided_copy(stream.device().properties(), src, dst, at);
  if (plan.items == 0) return;
  prepare_strided_copy(stream.device(), plan, at).launch(stream, at);
}

}  // namespace tilewright
