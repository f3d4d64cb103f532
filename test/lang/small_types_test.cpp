// SPDX-License-Identifier: Apache-2.0
// The instructions of conversions to and from fp6, fp4, ue8m0 and 4-bit integers.
#include "tilewright/fragment.h"
#include "tilewright/ue8m0.h"
#include "trace_fixture.h"

namespace tilewright {
namespace {

using test::expect_ptx;

constexpr ptx::Target kHopper{90, 'a'};
constexpr ptx::Target kBlackwell{100, 'a'};
const TensorArg kWide{f32, Shape{64}, Stride{1}, 16};
const TensorArg kHalves{f16, Shape{64}, Stride{1}, 16};
const TensorArg kFours{e2m1, Shape{64}, Stride{1}, 16};
const TensorArg kEights{e4m3, Shape{64}, Stride{1}, 16};
const TensorArg kSixes{e3m2, Shape{64}, Stride{1}, 16};
const TensorArg kScales{ue8m0, Shape{64}, Stride{1}, 16};
const TensorArg kNibbles{s4, Shape{64}, Stride{1}, 16};

TEST(SmallTypes, NarrowToFp4ByArithmeticOnHopper) {
  expect_ptx(
      "fp4_narrow", kHopper,
      [](const Tensor& x, const Tensor& q) { store(q(8), load(x(0), 4).to(e2m1)); }, kWide, kFours);
}

TEST(SmallTypes, LookFp4UpOnHopper) {
  expect_ptx(
      "fp4_widen", kHopper,
      [](const Tensor& q, const Tensor& y) { store(y(0), load(q(0), 8).to(f16)); }, kFours,
      kHalves);
}

TEST(SmallTypes, ConvertFp6ByArithmeticOnHopper) {
  expect_ptx(
      "fp6", kHopper,
      [](const Tensor& x, const Tensor& q, const Tensor& y) {
        store(q(0), load(x(0), 4).to(e3m2));
        store(y(0), load(q(4), 4).to(f16));
      },
      kWide, kSixes, kHalves);
}

TEST(SmallTypes, ConvertFp8ByArithmeticOnAmpere) {
  expect_ptx(
      "fp8_sm80", {80, '\0'},
      [](const Tensor& x, const Tensor& q, const Tensor& y) {
        store(q(0), load(x(0), 1).to(e4m3));
        store(y(0), load(q(4), 2).to(f16));
      },
      kWide, kEights, kHalves);
}

TEST(SmallTypes, ConvertFp4AndFp6ByInstructionsOnBlackwell) {
  expect_ptx(
      "fp4_sm100a", kBlackwell,
      [](const Tensor& x, const Tensor& q, const Tensor& s) {
        Fragment wide = load(x(0), 8);
        store(q(0), wide.to(e2m1));
        store(s(0), wide.to(e3m2));
        store(x(8), load(q(8), 4).to(f32));
      },
      kWide, kFours, kSixes);
}

TEST(SmallTypes, ConvertScalesByInstructionsOnBlackwell) {
  expect_ptx(
      "ue8m0_sm100a", kBlackwell,
      [](const Tensor& x, const Tensor& s) {
        store(s(0), to_ue8m0(load(x(0), 4), PowerRounding::up));
        store(x(4), load(s(4), 4).to(f32));
      },
      kWide, kScales);
}

TEST(SmallTypes, SpreadAndPackNibbles) {
  expect_ptx(
      "nibbles", kHopper,
      [](const Tensor& q, const Tensor& y) {
        Fragment wide = load(q(0), 8);
        store(y(0), wide.to(f16));
        store(q(8), wide.to(s32).to(s4));
      },
      kNibbles, kHalves);
}

}  // namespace
}  // namespace tilewright
