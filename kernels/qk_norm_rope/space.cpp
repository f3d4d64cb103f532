// SPDX-License-Identifier: Apache-2.0
// What the plans of qk_norm, qk_norm_rope and rope may choose.
#include "kernels/qk_norm_rope/qk_norm_rope.h"
#include "kernels/rows/row_shape.h"
#include "tilewright/tune.h"

#include <algorithm>
#include <array>

namespace tilewright {
namespace {

constexpr int kWarp = 32;
constexpr int kMaxThreadsOfSm = 2048;
constexpr int kMaxHeadsOfThread = 8;  // loads of all of them are in flight at once

constexpr std::array kLanes{4, 8, 16, 32};
constexpr std::array kThreads{32, 64, 128, 256};
constexpr std::array kHeads{1, 2, 4, 8};
constexpr std::array kResident{0, 4, 8, 12, 16};

/// The lanes of a head decide the order of its sum: no key counts tokens.
constexpr std::array<tune::KeySpec, 4> kOrderKeys{{{"bits"}, {"d"}, {"rotary"}, {"access"}}};
constexpr std::array<tune::Knob, 1> kOrderKnobs{{{"lanes", kLanes}}};
/// Heads of values say whether a cache is written, which takes registers, and codes take more.
constexpr std::array<tune::KeySpec, 8> kBlocksKeys{{{"bits"},
                                                    {"d"},
                                                    {"lanes"},
                                                    {"q_heads"},
                                                    {"k_heads"},
                                                    {"v_heads"},
                                                    {"codes"},
                                                    {"tokens", tune::Match::nearest}}};
constexpr std::array<tune::Knob, 3> kBlocksKnobs{
    {{"threads", kThreads}, {"heads", kHeads}, {"resident", kResident}}};
constexpr std::array<tune::Reducible, 2> kReducible{{{"T", 67}, {"P", 500}}};

/// Two accesses a thread are best (measured on an H200 for norms of rows).
tune::Config standard_order(const DeviceProperties&, const tune::Key& key) {
  const std::int64_t accesses = rows::ceil_div(key[1], key[3]);
  const std::int64_t lanes = rows::power_of_two_from(rows::ceil_div(accesses, 2));
  return {static_cast<int>(std::min<std::int64_t>(lanes, kWarp))};
}
bool valid_order(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  const int lanes = config[0];
  const bool power = lanes >= 1 && lanes <= kWarp && (lanes & (lanes - 1)) == 0;
  return power && lanes <= rows::power_of_two_from(rows::ceil_div(key[1], key[3]));
}

tune::Config standard_blocks(const DeviceProperties&, const tune::Key&) { return {128, 1, 0}; }

/// Heads of a thread are all of q or all of k, so that they share their weights.
bool valid_blocks(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  const auto [threads, heads, resident, d, e, f, g, h] = config;
  const bool whole = threads >= kWarp && threads <= 1024 && threads % kWarp == 0;
  if (!whole || heads < 1 || heads > kMaxHeadsOfThread || resident < 0) return false;
  if (key[3] % heads != 0 || key[4] % heads != 0) return false;
  return resident <= kMaxThreadsOfSm / threads;
}

/// The two spaces of an operator.
struct Spaces {
  tune::Space order, blocks;
};
constexpr Spaces spaces(std::string_view order, std::string_view blocks) {
  return {{order, kOrderKeys, kOrderKnobs, standard_order, valid_order, kReducible},
          {blocks, kBlocksKeys, kBlocksKnobs, standard_blocks, valid_blocks, kReducible}};
}
constexpr Spaces kNorm = spaces("qk_norm", "qk_norm.blocks");
constexpr Spaces kNormRope = spaces("qk_norm_rope", "qk_norm_rope.blocks");
constexpr Spaces kRope = spaces("rope", "rope.blocks");

const Spaces& spaces_of(std::string_view op) {
  for (const Spaces* each : {&kNormRope, &kRope}) {
    if (each->order.name == op) return *each;
  }
  return kNorm;
}

/// Whether the device has room for all threads at once with the registers of early loads: then
/// there are no other blocks to hide a thread's waits behind. Rotations wait for positions anyway:
/// heads of one token that waited with them took 1.84 us on an H200, and 1.49 us without.
bool loads_early(const DeviceProperties& device, const QkConfig& config, std::int64_t tokens) {
  if (config.style != RopeStyle::none) return false;
  constexpr std::int64_t kThreadsOfSm = 1024;  // of 64 registers
  const std::int64_t threads = tokens * (config.heads_of_token() / config.heads) * config.lanes;
  return threads <= device.sm_count * kThreadsOfSm;
}

}  // namespace

void choose_threads(std::string_view op, const DeviceProperties& device, const View& q, bool codes,
                    QkConfig& config) {
  const Spaces& of_op = spaces_of(op);
  const int width = bits(q.type);
  config.lanes =
      tune::choose(of_op.order, device, {width, config.d, config.rotary, config.vector_elems})[0];
  const tune::Config chosen =
      tune::choose(of_op.blocks, device,
                   {width, config.d, config.lanes, config.q_heads, config.k_heads, config.v_heads,
                    codes ? 1 : 0, q.shape[0]});
  config.threads = chosen[0];
  config.heads = chosen[1];
  config.resident = chosen[2];
  config.early = loads_early(device, config, q.shape[0]);
}

}  // namespace tilewright
