// SPDX-License-Identifier: Apache-2.0
// The convolution of four taps, traced.
#include "kernels/kda/short_conv.h"

#include "kernels/kda/gate.h"
#include "tilewright/bit.h"
#include "tilewright/control.h"

namespace tilewright::kda {
namespace {

/// Whether the taps of a channel are next to each other in [..., D, 3]; else channels are.
bool taps_contiguous(const Tensor& pool) {
  const Stride& stride = pool.layout().stride();
  return stride[stride.rank() - 1].value().is_static(1);
}

/// A lane's convolutions before their activation.
struct Sums {
  Fragment z;
  Fragment partial;  ///< the magnitudes of all partial sums: each was rounded to 2^-24 of itself
};

Sums sums_of(const Fragment& taps, const Fragment& bias, const Inputs& inputs) {
  Sums sums{bias.clone(), Fragment(f32, kLaneChannels)};
  for (int i = 0; i < kLaneChannels; ++i) {
    Var partial(f32, 0.0f);
    for (int tap = 0; tap < kTaps; ++tap) {
      sums.z[i] = fma(taps[i * kTaps + tap], inputs[static_cast<std::size_t>(tap)][i], sums.z[i]);
      partial = partial + abs(sums.z[i]);
    }
    sums.partial[i] = partial;
  }
  return sums;
}

constexpr std::uint32_t kBf16Bits = 0xffff0000u;

/// The f32 number half way between the two bf16 numbers around `y`.
Value tie_at(const Value& y) { return ((y.bitcast(u32) & kBf16Bits) | 0x8000u).bitcast(f32); }

/// Whether `y`, an approximation of silu(z), may be on the other side of the tie than silu(z). The
/// slope of silu is at most 1.1; approximate e^x, 1 / x and their arguments are off by 2^-21 and
/// |z| 2^-23 together.
Value near_tie(const Value& y, const Value& z, const Value& partial) {
  Value of_activation = abs(y) * fma(abs(z), 0x1p-23f, 0x1p-21f);
  return abs(y - tie_at(y)) <= fma(partial, 0x1p-23f, of_activation);
}

/// Element `index`, known to the device, of a fragment of which `step` apart ones are looked at.
Value pick(const Fragment& values, const Value& index, int first, int step) {
  Value a = select(index == 0, values[first], values[first + step]);
  Value b = select(index == 2, values[first + 2 * step], values[first + 3 * step]);
  return select(index < 2, a, b);
}

/// e^x in f64 within 2^-36, infinity and 0 as large and small numbers: a short chain of
/// instructions, for which a block waits.
Value quick_exp(const Value& x) {
  constexpr double kLog2E64 = 0x1.71547652b82fep+0, kLn2 = 0x1.62e42fefa39efp-1;
  constexpr double kShift = 0x1.8p52;  // leaves an integer in the low bits
  Value bounded = min(max(x, -700.0), 700.0);
  Value shifted = fma(bounded, kLog2E64, kShift);
  Value r = fma(shifted - kShift, -kLn2, bounded);
  Value r2 = r * r, r4 = r2 * r2;
  Value first = fma(fma(r, 1.0 / 6, 0.5), r2, r + 1.0);  // terms of the series, in pairs
  Value second = fma(fma(r, 1.0 / 5040, 1.0 / 720), r2, fma(r, 1.0 / 120, 1.0 / 24));
  Value third = fma(r2, 1.0 / 3628800, fma(r, 1.0 / 362880, 1.0 / 40320));
  Value power = fma(third, r4 * r4, fma(second, r4, first));
  return (power.bitcast(s64) + (shifted.bitcast(s64) << 52)).bitcast(f64);
}

/// silu of channel `index` in f64, against the tie: y (1 + e^-z) = z needs no division.
Value rounded_exactly(const Value& index, const Value& y, const Fragment& taps,
                      const Fragment& bias, const Inputs& inputs) {
  Var z(pick(bias, index, 0, 1).to(f64));
  for (int tap = 0; tap < kTaps; ++tap) {
    Value x = pick(inputs[static_cast<std::size_t>(tap)], index, 0, 1).to(f64);
    z = fma(pick(taps, index, tap, kTaps).to(f64), x, z);
  }
  Value tie = tie_at(y);
  Value beyond = abs(z) > abs(tie.to(f64)) * (quick_exp(-Value(z)) + 1.0);
  Value below = y.bitcast(u32) & kBf16Bits;
  return (below + select(beyond, constant(u32, 0x10000), constant(u32, 0))).bitcast(f32);
}

}  // namespace

ConvWeights load_conv_weights(const Tensor& weight, const std::optional<Tensor>& bias,
                              const Value& channel, const Value& active, Access access) {
  ConvWeights weights{access_if(access, active, weight(channel, 0), kLaneChannels * kTaps)};
  if (bias) weights.bias.emplace(access_if(access, active, (*bias)(channel), kLaneChannels));
  return weights;
}

Fragment convolve(const ConvWeights& weights, const Inputs& inputs) {
  Fragment taps = weights.taps.to(f32);
  Fragment bias(f32, kLaneChannels);
  bias.fill(0.0f);
  if (weights.bias) bias.assign(weights.bias->to(f32));
  Sums sums = sums_of(taps, bias, inputs);
  Fragment y = map(sums.z, [](const Value& z) { return z * sigmoid_approx(z); });
  Fragment rounded = y.to(bf16).to(f32);
  Var unsure(u32, 0);  // bit i: channel i
  for (int i = 0; i < kLaneChannels; ++i) {
    Value near = near_tie(y[i], sums.z[i], sums.partial[i]);
    unsure = unsure | select(near, constant(u32, 1 << i), constant(u32, 0));
  }
  while_([&] { return unsure != 0; },
         [&] {
           Value index = clz(brev(unsure));  // the lowest bit that is set
           Value exact = rounded_exactly(index, pick(y, index, 0, 1), taps, bias, inputs);
           for (int i = 0; i < kLaneChannels; ++i)
             rounded[i] = select(index == i, exact, rounded[i].get());
           unsure = unsure & (unsure - 1);
         });
  return rounded;
}

History load_history(const Tensor& state, const Value& line, const Value& channel,
                     const Value& active, Access access) {
  if (!taps_contiguous(state)) {
    auto column = [&](int tap) {
      return access_if(access, active, state(line, channel, tap), kLaneChannels).to(f32);
    };
    return {column(0), column(1), column(2)};
  }
  Element first = state(line, channel, 0);
  Fragment all = access_if(access, active, first, kLaneChannels * kHistory).to(f32);
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
    for (int tap = 0; tap < kHistory; ++tap) {
      store_if(active, line(channel, tap),
               inputs[static_cast<std::size_t>(tap) + 1].to(line.type()));
    }
    return;
  }
  Fragment all = Fragment::undefined(f32, kLaneChannels * kHistory);
  for (int i = 0; i < kLaneChannels; ++i) {
    for (int tap = 0; tap < kHistory; ++tap)
      all[i * kHistory + tap] = inputs[static_cast<std::size_t>(tap) + 1][i];
  }
  store_if(active, line(channel, 0), all.to(line.type()));
}

}  // namespace tilewright::kda
