// SPDX-License-Identifier: Apache-2.0
// The convolution of four taps, traced.
#include "kernels/kda/short_conv.h"

#include "kernels/kda/gate.h"

namespace tilewright::kda {
namespace {

/// Whether the taps of a channel are next to each other in [..., D, 3]; else channels are.
bool taps_contiguous(const Tensor& pool) {
  const Stride& stride = pool.layout().stride();
  return stride[stride.rank() - 1].value().is_static(1);
}

Value bf16_rounded(const Value& x) { return x.to(bf16).to(f32); }

}  // namespace

ConvWeights load_conv_weights(const Tensor& weight, const std::optional<Tensor>& bias,
                              const Value& channel, const Value& active) {
  ConvWeights weights{load_if(active, weight(channel, 0), kLaneChannels * kTaps)};
  if (bias) weights.bias.emplace(load_if(active, (*bias)(channel), kLaneChannels));
  return weights;
}

Fragment convolve(const ConvWeights& weights, const Inputs& inputs) {
  Fragment taps = weights.taps.to(f32);
  Fragment out(f32, kLaneChannels);
  if (weights.bias) {
    out.assign(weights.bias->to(f32));
  } else {
    out.fill(0.0f);
  }
  for (int tap = 0; tap < kTaps; ++tap) {
    for (int i = 0; i < kLaneChannels; ++i)
      out[i] = fma(taps[i * kTaps + tap], inputs[static_cast<std::size_t>(tap)][i], out[i]);
  }
  return map(out, [](const Value& z) { return bf16_rounded(z * sigmoid_approx(z)); });
}

History load_history(const Tensor& state, const Value& line, const Value& channel,
                     const Value& active) {
  if (!taps_contiguous(state)) {
    auto column = [&](int tap) {
      return load_if(active, state(line, channel, tap), kLaneChannels).to(f32);
    };
    return {column(0), column(1), column(2)};
  }
  Fragment all = load_if(active, state(line, channel, 0), kLaneChannels * kHistory).to(f32);
  auto column = [&](int tap) {
    Fragment out = Fragment::undefined(f32, kLaneChannels);
    for (int i = 0; i < kLaneChannels; ++i)
      out[i] = all[i * kHistory + tap];
    return out;
  };
  return {column(0), column(1), column(2)};
}

void store_window_if(const Value& active, const Tensor& line, const Value& channel,
                     const Inputs& inputs) {
  if (!taps_contiguous(line)) {
    for (int tap = 0; tap < kHistory; ++tap)
      store_if(active, line(channel, tap),
               inputs[static_cast<std::size_t>(tap + 1)].to(line.type()));
    return;
  }
  Fragment all = Fragment::undefined(f32, kLaneChannels * kHistory);
  for (int i = 0; i < kLaneChannels; ++i) {
    for (int tap = 0; tap < kHistory; ++tap)
      all[i * kHistory + tap] = inputs[static_cast<std::size_t>(tap + 1)][i];
  }
  store_if(active, line(channel, 0), all.to(line.type()));
}

}  // namespace tilewright::kda
