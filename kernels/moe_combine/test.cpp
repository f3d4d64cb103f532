// SPDX-License-Identifier: Apache-2.0
// moe_combine against its float64 reference and, as its order is fixed, bit for bit.
#include "kernels/moe_combine/moe_combine.h"
#include "operator_fixture.h"

#include <cmath>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Options;
using test::Placement;

struct Problem {
  std::int64_t tokens = 5, k = 4, h = 96;
  Type type = bf16;
};

class MoeCombine : public OperatorTest {
 protected:
  /// Slots in an order of no meaning, every seventh choice without a row.
  static std::vector<double> slots(std::int64_t count) {
    std::vector<double> slots;
    for (std::int64_t i = 0; i < count; ++i)
      slots.push_back(i % 7 == 3 ? -1 : static_cast<double>((i * 29 + 11) % (count + 2)));
    return slots;
  }
  static std::vector<Array> inputs(const Problem& p) {
    std::int64_t count = p.tokens * p.k;
    return {random("y", p.type, {count + 2, p.h}), make_array("slot", s32, {count}, slots(count)),
            random("weights", f32, {p.tokens, p.k}, 0.5, 2)};
  }
  static std::vector<Array> with(std::vector<Array> all, const char* name, Type type) {
    std::vector<std::int64_t> shape{all[2].shape[0], all[0].shape[1]};
    all.push_back(random(name, type, shape, 1, 3));
    return all;
  }

  const Operator& combine = moe_combine_operator();
};

TEST_F(MoeCombine, SumsRowsOfAllTypesAndLengths) {
  for (Type type : {bf16, f16, f32}) {
    for (std::int64_t h : {1, 7, 63, 96, 1234, 2880})
      run(combine, inputs({.h = h, .type = type}));
  }
}

TEST_F(MoeCombine, SumsAnyNumberOfChoices) {
  for (std::int64_t k : {1, 2, 3, 6, 8, 9, 16, 64})
    run(combine, inputs({.tokens = 3, .k = k}));
}

TEST_F(MoeCombine, WritesOtherTypes) {
  for (Type type : {bf16, f16, f32}) {
    for (const char* out : {"bf16", "f16", "f32"})
      run(combine, inputs({.type = type}), {{"out_type", out}});
  }
}

TEST_F(MoeCombine, BeginsWithSharedExpertsOrWithWhatIsThere) {
  for (Type type : {bf16, f16, f32}) {
    run(combine, with(inputs({}), "shared", type));
    run(combine, with(inputs({}), "shared", type), {{"out_type", "f32"}});
    run(combine, with(inputs({}), "out", type), {{"accumulate", "true"}});
    run(combine, with(inputs({}), "out", type));
  }
}

TEST_F(MoeCombine, AddsInTheOrderOfChoicesAndRoundsOnce) {
  std::vector<Array> given = with(inputs({.tokens = 9, .k = 8, .h = 40}), "shared", bf16);
  Array out = run(combine, given).front();
  std::vector<double> y = to_doubles(given[0]), slot = to_doubles(given[1]);
  std::vector<double> weights = to_doubles(given[2]), expected = to_doubles(given[3]);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    auto sum = static_cast<float>(expected[i]);
    for (std::size_t k = i / 40 * 8; k < i / 40 * 8 + 8; ++k) {
      if (slot[k] < 0) continue;
      auto value = static_cast<float>(y[static_cast<std::size_t>(slot[k]) * 40 + i % 40]);
      sum = std::fma(static_cast<float>(weights[k]), value, sum);
    }
    expected[i] = static_cast<double>(sum);
  }
  EXPECT_EQ(out.bytes, make_array("out", bf16, out.shape, expected).bytes);
}

TEST_F(MoeCombine, GivesTheSameBitsWhereverRowsLie) {
  std::vector<Array> given = inputs({.tokens = 4, .k = 3, .h = 24});
  std::vector<double> moved = to_doubles(given[1]);
  Array y = given[0];
  std::int64_t rows = y.shape[0], row_bytes = 48;
  for (std::int64_t row = 0; row < rows; ++row) {  // the last row first
    std::copy_n(given[0].bytes.begin() + row * row_bytes, row_bytes,
                y.bytes.begin() + (rows - 1 - row) * row_bytes);
  }
  for (double& slot : moved)
    slot = slot < 0 ? slot : static_cast<double>(rows - 1) - slot;
  EXPECT_EQ(run(combine, given).front().bytes,
            run(combine, {y, make_array("slot", s32, {12}, moved), given[2]}).front().bytes);
}

TEST_F(MoeCombine, SkipsSlotsOutsideAndKeepsZerosExact) {
  std::vector<double> nan(16, NAN);
  std::vector<Array> given = {make_array("y", f32, {2, 8}, nan),
                              make_array("slot", s32, {1, 4}, std::vector<double>{-1, 2, -7, 9}),
                              random("weights", f32, {1, 4})};
  for (double value : to_doubles(run(combine, given).front()))
    EXPECT_EQ(value, 0);
  given.push_back(make_array("shared", f32, {1, 8}, std::vector<double>(8, -0.0)));
  for (double value : to_doubles(run(combine, given).front()))
    EXPECT_TRUE(value == 0 && std::signbit(value));
}

TEST_F(MoeCombine, GivesNanForAnInfiniteRowWithoutWeight) {
  std::vector<Array> given = {make_array("y", f32, {1, 2}, std::vector<double>{INFINITY, 1}),
                              make_array("slot", s32, {1}, std::vector<double>{0}),
                              make_array("weights", f32, {1, 1}, std::vector<double>{0})};
  std::vector<double> out = to_doubles(run(combine, given).front());
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], 0);
}

TEST_F(MoeCombine, TakesStridesAndAlignments) {
  for (std::int64_t padding : {1, 4, 8}) {
    for (std::int64_t offset : {0, 1, 2}) {
      std::vector<Array> given = with(inputs({.h = 64}), "shared", f32);
      // The slots are contiguous whatever the padding: they have one mode.
      run(combine, given, {}, Placement{.row_padding = padding, .offset_elems = offset});
    }
  }
}

TEST_F(MoeCombine, GivesTheSameSumsInEverySchedule) {
  run_schedules(combine, with(inputs({.tokens = 40, .k = 3, .h = 40}), "shared", bf16));
}

TEST_F(MoeCombine, CombinesManyTokens) { run(combine, inputs({.tokens = 300, .k = 2, .h = 8})); }

TEST_F(MoeCombine, ReadsRowsBeyondTwoToThe31Elements) {
  if (!emulated()) GTEST_SKIP() << "takes 4 GiB: the emulator's memory is sparse";
  constexpr std::int64_t kStride = (std::int64_t{1} << 31) + 8;
  Buffer y(device, 2 * (kStride + 8)), small(device, 256);
  const std::uint16_t rows[] = {0x3c00, 0x4000};  // 1 and 2 in f16
  y.upload(std::as_bytes(std::span(rows, 1)));
  y.upload(std::as_bytes(std::span(rows + 1, 1)), 2 * kStride);
  const std::int32_t slot[] = {0, 1};
  const float weights[] = {3, 5};
  small.upload(std::as_bytes(std::span(slot)));
  small.upload(std::as_bytes(std::span(weights)), 64);
  std::int64_t two[] = {2, 1}, far[] = {kStride, 1}, one[] = {1, 2}, single[] = {1, 1};
  moe_combine(stream, {.y = make_view(y.address(), f16, two, far),
                       .slot = make_view(small.address(), s32, one),
                       .weights = make_view(small.address() + 64, f32, one),
                       .out = make_view(small.address() + 128, f32, single)});
  stream.synchronize();
  float out = 0;
  small.download(std::as_writable_bytes(std::span(&out, 1)), 128);
  EXPECT_EQ(out, 3 * 1 + 5 * 2);
}

TEST_F(MoeCombine, LaunchesNothingForNoTokens) { run(combine, inputs({.tokens = 0})); }

TEST_F(MoeCombine, AddsRanksUpToTheWhole) {
  // Two ranks have half of the experts each: every choice is skipped by one of them.
  std::vector<Array> given = inputs({.tokens = 6, .k = 4, .h = 32, .type = f32});
  std::vector<double> whole = to_doubles(run(combine, given).front()), sum(whole.size());
  for (int rank : {0, 1}) {
    std::vector<double> slot = to_doubles(given[1]);
    for (std::size_t i = 0; i < slot.size(); ++i)
      slot[i] = static_cast<int>(i / 2) % 2 == rank ? slot[i] : -1;
    Array mine = make_array("slot", s32, {24}, slot);
    std::vector<double> part = to_doubles(run(combine, {given[0], mine, given[2]}).front());
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += part[i];
  }
  for (std::size_t i = 0; i < sum.size();
       ++i)  // five terms of about 1, rounded to f32 in each part
    EXPECT_NEAR(sum[i], whole[i], 8 * 0x1p-24 * 4);
}

TEST_F(MoeCombine, RefusesWhatItCannotCombine) {
  std::vector<Array> given = inputs({});
  EXPECT_EQ(refusal(combine, {given[0], random("slot", s32, {19}), given[2]}),
            "moe_combine: slot is s32[19]; it must be 20 contiguous elements of s32, T K");
  EXPECT_EQ(
      refusal(combine, {given[0], random("slot", s32, {5 * 65}), random("weights", f32, {5, 65})}),
      "moe_combine: weights is f32[5,65]; K must be 1 to 64");
  EXPECT_EQ(
      refusal(combine, {given[0], given[1], given[2], random("shared", bf16, {5, 95})}),
      "moe_combine: shared is bf16[5,95] and y bf16[22,96]; their rows must have the same length");
  EXPECT_EQ(refusal(combine, {given[0], given[1], given[2], random("shared", bf16, {4, 96})}),
            "moe_combine: shared is bf16[4,96] and weights f32[5,4]; T must be equal");
  EXPECT_EQ(refusal(combine, given, {{"accumulate", "true"}}),
            "moe_combine: accumulate=true, but out is not given; it is what the sum begins with");
  EXPECT_EQ(
      refusal(combine, with(with(given, "shared", bf16), "out", bf16), {{"accumulate", "true"}}),
      "moe_combine: accumulate=true, and shared is given; the sum begins with one of them");
}

}  // namespace
}  // namespace tilewright
