// SPDX-License-Identifier: Apache-2.0
// Lesson 12: decode attention. Few heads do not fill a GPU: the keys are split, and then merged.
//   keys      0 ... 20 | 21 ... 41 | ...        a warp a split and head
//   partial   (value[D], most, sum) ...         each by the rule of the online softmax
//   out            value[D] / sum               merged by the same rule
#include "tilewright/tilewright.h"

#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

namespace tw = tilewright;

constexpr int kHeads = 3, kDim = 64;  // two elements a lane
constexpr int kKeys = 101, kSplits = 5, kEach = (kKeys + kSplits - 1) / kSplits;

// begin kernels
/// The greatest score so far, the sum of e^(score - most), and the values with those weights.
struct OnlineSoftmax {
  tw::Var most{tw::f32, -INFINITY};
  tw::Var sum{tw::f32, 0};
  tw::Fragment value{tw::f32, 2};  // this lane's elements of the head
  OnlineSoftmax() { value.fill(0); }
  /// A greater score than before makes what was gathered so far weigh less.
  void absorb(const tw::Value& score, const tw::Value& more, const tw::Fragment& values) {
    tw::Value now = tw::max(most, score);
    tw::Value keep = tw::exp(most - now), weight = tw::exp(score - now);
    sum = sum * keep + more * weight;
    value.assign(value * keep + values * weight);
    most = now;
  }
};

/// One warp takes the keys of one split, in order.
void attend(const tw::Tensor& q, const tw::Tensor& k, const tw::Tensor& v,
            const tw::Tensor& partial) {
  auto add = [](const tw::Value& a, const tw::Value& b) { return a + b; };
  tw::Value split = tw::block_idx().x, head = tw::block_idx().y;
  tw::Value lane = tw::lane_idx(), d = lane * 2;
  tw::Fragment query = tw::load(q(head, d), 2) * (1 / std::sqrt(float{kDim}));
  OnlineSoftmax softmax;
  tw::for_(split * kEach, tw::min((split + 1) * kEach, kKeys), 1, [&](const tw::Value& key) {
    tw::Value score = tw::warp_reduce(tw::reduce(query * tw::load(k(head, key, d), 2), add), add);
    softmax.absorb(score, tw::constant(tw::f32, 1), tw::load(v(head, key, d), 2));
  });
  tw::store(partial(head, split, d), softmax.value);
  tw::Value last = tw::select(lane == 0, softmax.most, softmax.sum);
  tw::if_(lane < 2, [&] { partial(head, split, kDim + lane) = last; });
}

/// One warp merges a head's splits: a split is a key with a weight and a value of its own.
void merge(const tw::Tensor& partial, const tw::Tensor& out) {
  tw::Value head = tw::block_idx().x, d = tw::lane_idx() * 2;
  OnlineSoftmax softmax;
  for (int split = 0; split < kSplits; ++split) {
    tw::Tensor part = partial(head, split, tw::_);
    softmax.absorb(part(kDim), part(kDim + 1), tw::load(part(d), 2));
  }
  tw::store(out(head, d), softmax.value * (1.0f / tw::Value(softmax.sum)));
}
// end kernels

struct Numbers {  // from -1 to 1, on the host and on the device
  std::vector<float> host;
  tw::Buffer memory;
  tw::View view;
  Numbers(const tw::Device& device, const std::vector<std::int64_t>& shape)
      : host(static_cast<std::size_t>(tw::element_count(shape))),
        memory(device, tw::storage_bytes(tw::f32, shape)),
        view(tw::make_view(memory.address(), tw::f32, shape)) {
    for (std::size_t i = 0; i < host.size(); ++i)
      host[i] = static_cast<float>(i * i % 211) / 105 - 1;
    memory.upload(std::as_bytes(std::span(host)));
  }
};

template <class Body, class... Tensors>
void launch(const tw::Device& device, tw::Dim3 grid, const Body& body, const Tensors&... tensors) {
  tw::TraceOptions options{.name = "attention", .target = device.target(), .block = {32, 1, 1}};
  auto traced = tw::trace(options, body, tw::tensor_arg(tensors.view)...);
  tw::Parameters parameters;
  (tw::pack(parameters, tw::tensor_arg(tensors.view), tensors.view), ...);
  tw::Kernel kernel = tw::compile(device, std::move(traced));
  kernel.launch({.grid = grid, .block = {32}}, parameters, tw::Stream::default_of(device));
}

int run(const char* device_name) {
  tw::Device device = tw::Device::open(device_name);
  Numbers q(device, {kHeads, kDim}), k(device, {kHeads, kKeys, kDim});  // v is k, here
  Numbers partial(device, {kHeads, kSplits, kDim + 2}), out(device, {kHeads, kDim});
  launch(device, {kSplits, kHeads}, attend, q, k, k, partial);
  launch(device, {kHeads}, merge, partial, out);

  std::vector<float> got = tw::download<float>(out.memory);  // waits for both
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    double above = 0, below = 0;
    for (std::size_t key = 0; key < kKeys; ++key) {
      const float* row = &k.host[(i / kDim * kKeys + key) * kDim];
      double score = std::inner_product(row, row + kDim, &q.host[i / kDim * kDim], 0.0);
      below += std::exp(score / 8);  // the root of kDim
      above += std::exp(score / 8) * double{row[i % kDim]};
    }
    worst = std::max(worst, std::abs(above / below - double{got[i]}));
  }
  bool right = worst < 1e-5;  // a hundred roundings of numbers below 1, at 2^-24 each
  std::printf("attention: %s on %s, off by %.1e, %zu findings\n", right ? "right" : "WRONG",
              device.id().c_str(), worst, device.findings().size());
  return right && device.findings().empty() ? 0 : 1;
}

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "emu:sm_90a");
  } catch (const tw::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 2;
  }
}
