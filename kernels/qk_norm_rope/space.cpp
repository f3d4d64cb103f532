// SPDX-License-Identifier: Apache-2.0
// What the plans of qk_norm, qk_norm_rope and rope may choose.
#include "kernels/qk_norm_rope/qk_norm_rope.h"
#include "kernels/rows/row_shape.h"
#include "tilewright/tune.h"

#include <algorithm>
#include <array>
#include <limits>

namespace tilewright {
namespace {

constexpr int kWarp = 32;
constexpr int kMaxThreadsOfSm = 2048;
constexpr int kMaxHeadsOfThread = 8;  // loads of all of them are in flight at once

constexpr std::array kLanes{4, 8, 16, 32};
constexpr std::array kThreads{64, 128, 256};
constexpr std::array kHeads{1, 2, 4};
constexpr std::array kResident{0, 8, 16};

/// Writing a cache takes registers, and codes take more: 0 there is none, 1 numbers, 2 codes.
constexpr std::array<tune::KeySpec, 8> kKeys{{{"bits"},
                                              {"d"},
                                              {"rotary"},
                                              {"access"},
                                              {"q_heads"},
                                              {"k_heads"},
                                              {"cache"},
                                              {"tokens", tune::Match::nearest}}};
constexpr std::array kLoads{0, 1, 2};  // of QkLoads
constexpr std::array<tune::Knob, 5> kKnobs{{{"lanes", kLanes},
                                            {"threads", kThreads},
                                            {"heads", kHeads},
                                            {"resident", kResident},
                                            {"loads", kLoads}}};
constexpr std::array<tune::Reducible, 2> kReducible{{{"T", 67}, {"P", 500}}};

/// Rotations take two accesses a thread, which hold both of a pair. Norms alone take one, which
/// searches on an H200 over 1 to 16384 tokens preferred.
tune::Config standard(const DeviceProperties&, const tune::Key& key) {
  const auto [bits, d, rotary, access, q_heads, k_heads, cache, tokens] = key;
  const std::int64_t accesses = rows::ceil_div(d, access);
  const std::int64_t lanes = rows::power_of_two_from(rows::ceil_div(accesses, rotary > 0 ? 2 : 1));
  return {static_cast<int>(std::min<std::int64_t>(lanes, kWarp)), 128, 1, 0, 0};
}

/// Heads of a thread are all of q or all of k, so that they share their weights. Without a rotation
/// there are no angles.
bool valid(const DeviceProperties&, const tune::Key& key, const tune::Config& config) {
  const auto [bits, d, rotary, access, q_heads, k_heads, cache, tokens] = key;
  const auto [lanes, threads, heads, resident, loads, f, g, h] = config;
  if (loads < 0 || loads > (rotary > 0 ? 2 : 1)) return false;
  const bool power = lanes >= 1 && lanes <= kWarp && (lanes & (lanes - 1)) == 0;
  if (!power || lanes > rows::power_of_two_from(rows::ceil_div(d, access))) return false;
  const bool whole = threads >= kWarp && threads <= 1024 && threads % kWarp == 0;
  if (!whole || heads < 1 || heads > kMaxHeadsOfThread || resident < 0) return false;
  if (q_heads % heads != 0 || k_heads % heads != 0) return false;
  return resident <= kMaxThreadsOfSm / threads;
}

/// Without a norm nothing is summed.
bool valid_rope(const DeviceProperties& device, const tune::Key& key, const tune::Config& config) {
  return config[4] == 0 && valid(device, key, config);
}

using Valid = decltype(tune::Space::valid);
constexpr tune::Space space(std::string_view name, Valid is_valid) {
  return {name, kKeys, kKnobs, standard, is_valid, kReducible};
}
constexpr tune::Space kNormSpace = space("qk_norm.blocks", valid);
constexpr tune::Space kNormRopeSpace = space("qk_norm_rope.blocks", valid);
constexpr tune::Space kRopeSpace = space("rope.blocks", valid_rope);

const tune::Space& space_of(std::string_view op) {
  return op == "qk_norm" ? kNormSpace : op == "rope" ? kRopeSpace : kNormRopeSpace;
}

/// How many times the device has room for all threads at once with 64 registers. Up to once, there
/// are no other blocks to hide a thread's waits behind.
std::int64_t waves(const DeviceProperties& device, const QkConfig& config, std::int64_t tokens) {
  constexpr std::int64_t kThreadsOfSm = 1024;
  const std::int64_t threads = tokens * (config.heads_of_token() / config.heads) * config.lanes;
  return rows::ceil_div(threads, device.sm_count * kThreadsOfSm);
}

/// Whether offsets of bytes fit 31 bits.
bool is_near(const View& view) {
  std::int64_t elements = 1;
  for (int i = 0; i < view.rank; ++i) {
    const auto mode = static_cast<std::size_t>(i);
    if (view.stride[mode] < 0) return false;
    elements += (view.shape[mode] - 1) * view.stride[mode];
  }
  return elements * bytes(view.type) <= std::numeric_limits<std::int32_t>::max();
}

/// Blocks of one token that are all of q or all of k: smaller ones where heads need it, down to
/// `least_threads`.
void set_apart(const QkTensors& t, int least_threads, QkConfig& config) {
  constexpr std::int64_t kMaxGridY = 65535;
  const bool near = is_near(t.q) && is_near(t.k) && is_near(t.q_out) && is_near(t.k_out);
  if (!near || t.v || config.q_heads == 0 || config.k_heads == 0) return;
  if (t.q.shape[0] < 1 || t.q.shape[0] > kMaxGridY) return;
  if (t.q_weight.has_value() != t.k_weight.has_value()) return;
  int threads = config.threads;
  const auto divides = [&] {
    const int heads = threads / config.lanes * config.heads;
    return config.q_heads % heads == 0 && config.k_heads % heads == 0;
  };
  while (!divides() && threads % (2 * kWarp) == 0 && threads / 2 >= least_threads)
    threads /= 2;
  config.apart = divides();
  if (config.apart) config.threads = threads;
}

/// Rotations alone take half an access a time: a thread's four loads of angles become two, which
/// the assembler issues at once. Sums of norms must not depend on the number of tokens.
void set_narrow(QkConfig& config) {
  const bool whole = config.vector_elems >= 2 && config.style == RopeStyle::neox && !config.norm;
  if (!whole || config.lanes > kWarp / 2 || config.threads > 512) return;
  config.vector_elems /= 2;
  config.lanes *= 2;
  config.threads *= 2;
  config.resident = std::min(config.resident, kMaxThreadsOfSm / config.threads);
}

}  // namespace

void choose_threads(std::string_view op, const DeviceProperties& device, const QkTensors& tensors,
                    bool codes, QkConfig& config) {
  const View& q = tensors.q;
  const int cache = config.v_heads == 0 ? 0 : codes ? 2 : 1;
  const tune::Config chosen =
      tune::choose(space_of(op), device,
                   {bits(q.type), config.d, config.rotary, config.vector_elems, config.q_heads,
                    config.k_heads, cache, q.shape[0]});
  config.lanes = chosen[0];
  config.threads = chosen[1];
  config.heads = chosen[2];
  config.resident = chosen[3];
  config.loads = static_cast<QkLoads>(chosen[4]);
  constexpr std::int64_t kFewWaves = 4;
  const std::int64_t needed = waves(device, config, q.shape[0]);
  if (needed > kFewWaves) return;
  if (needed <= 1 && config.style == RopeStyle::none) config.loads = QkLoads::early;
  // Blocks of a warp were slower on an H200 (few_tokens.json), but for rotations alone of few.
  const bool rotates_few = needed <= 1 && !config.norm;
  set_apart(tensors, rotates_few ? kWarp : 2 * kWarp, config);
  if (config.apart && needed <= 1) set_narrow(config);
}

}  // namespace tilewright
