// SPDX-License-Identifier: Apache-2.0
// Shapes of kda_conv_verify, memory for many sets of their tensors, and how launches are timed.
#pragma once

#include "kernels/kda_conv_verify/kda_conv_verify.h"
#include "tilewright/tilewright.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace tilewright::bench {

inline constexpr std::int64_t kHead = 128;
inline constexpr std::int64_t kBeyondCache =
    240'000'000;  // bytes of the sets that launches rotate over
inline constexpr std::int64_t kPool = std::int64_t{6} << 30;
inline constexpr double kSampleUs = 1500;
inline constexpr int kSamples = 7;

struct Shape {
  int tokens = 4, heads = 8;
  std::int64_t rows = 1;
};

inline std::string name_of(const Shape& s) {
  return "T=" + std::to_string(s.tokens) + " H=" + std::to_string(s.heads) +
         " N=" + std::to_string(s.rows);
}

/// The bytes of the contract's cost model.
inline double bytes_of(const Shape& s) {
  return static_cast<double>(s.rows) * s.heads * (74752 + 71426.0 * s.tokens) + 8196.0 * s.heads;
}

/// Memory for all sets of a shape's tensors, filled once with random bf16 numbers: two of them are
/// an f32 number of as much.
class Pool {
 public:
  explicit Pool(const Device& device) : memory_(device, kPool) {
    constexpr std::size_t kBlock = 3 << 20;  // bytes
    std::vector<std::byte> block(kBlock);
    std::uint32_t state = 1;
    for (std::size_t at = 0; at < kBlock; at += 2) {
      state = state * 1664525u + 1013904223u;
      double value = static_cast<double>(state >> 8) * 0x1p-24 - 0.5;
      auto bits = static_cast<std::uint16_t>(encode(bf16, value));
      std::memcpy(&block[at], &bits, 2);
    }
    Stream stream(device);
    auto size = static_cast<std::int64_t>(kBlock);
    memory_.upload(block);
    for (std::int64_t filled = size; filled < kPool; filled *= 2)
      copy_on_device(memory_.address() + static_cast<std::uint64_t>(filled), memory_.address(),
                     std::min(filled, kPool - filled), stream);
    stream.synchronize();
  }
  void clear() { used_ = 0; }
  std::int64_t left() const { return kPool - used_; }
  View take(Type type, std::vector<std::int64_t> shape) {
    View view = make_view(memory_.address() + static_cast<std::uint64_t>(used_), type, shape);
    used_ += (size_bytes(view) + 255) / 256 * 256;
    return view;
  }
  View indices(std::int64_t rows) {
    std::vector<int> identity(static_cast<std::size_t>(rows));
    std::iota(identity.begin(), identity.end(), 0);
    std::int64_t offset = used_;
    View view = take(s32, {rows});
    memory_.upload(std::as_bytes(std::span(identity)), offset);
    return view;
  }

 private:
  Buffer memory_;
  std::int64_t used_ = 0;
};

inline KdaConvVerifyTensors take_set(Pool& pool, const Shape& s) {
  std::int64_t n = s.rows, t = s.tokens, h = s.heads, d = 3 * h * kHead;
  return {.mixed_qkv = pool.take(bf16, {n * t, d}),
          .conv_weight = pool.take(f32, {d, 4}),
          .conv_bias = pool.take(f32, {d}),
          .conv_state = pool.take(f32, {n, d, 3}),
          .conv_state_indices = pool.indices(n),
          .intermediate_state_indices = pool.indices(n),
          .a = pool.take(bf16, {n, t, h, kHead}),
          .b = pool.take(bf16, {n, t, h}),
          .A_log = pool.take(f32, {h}),
          .dt_bias = pool.take(f32, {h, kHead}),
          .ssm_states = pool.take(f32, {n, h, kHead, kHead}),
          .cache_indices = pool.indices(n),
          .out = pool.take(bf16, {n, t, h, kHead}),
          .intermediate_states_buffer = pool.take(f32, {n, t, h, kHead, kHead}),
          .intermediate_conv_window = pool.take(f32, {n, t, d, 3})};
}

inline KdaConvVerifyOptions options_of_bench() {
  KdaConvVerifyOptions options;
  options.gate.lower_bound = -5.0f;
  return options;
}

/// The median of some replays, in microseconds a launch; `launch(i)` queues launch i.
template <class Launch>
double time_us(const Stream& stream, int sets, double guess_us, Launch&& launch) {
  int count = std::clamp(static_cast<int>(kSampleUs / guess_us), std::min(sets, 2), 1000);
  Graph graph = Graph::capture(stream, [&] {
    for (int i = 0; i < count; ++i)
      launch(i);
  });
  Event start(stream.device()), end(stream.device());
  std::vector<double> us;
  for (int sample = -1; sample < kSamples; ++sample) {  // -1 warms up
    start.record(stream);
    graph.launch(stream);
    end.record(stream);
    double each = elapsed_ms(start, end) * 1000 / count;
    if (sample >= 0) us.push_back(each);
  }
  std::nth_element(us.begin(), us.begin() + kSamples / 2, us.end());
  return us[kSamples / 2];
}

inline PreparedLaunch prepare(const Device& device, const KdaConvVerifyPlan& plan) {
  return rows::prepare(device, plan, SourceLoc::here());
}

}  // namespace tilewright::bench
