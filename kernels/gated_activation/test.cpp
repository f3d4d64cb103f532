// SPDX-License-Identifier: Apache-2.0
// The gated activations against their float64 reference: shapes, types, options, hard inputs.
#include "kernels/gated_activation/gated_activation.h"
#include "kernels/gated_activation/reference.h"
#include "operator_fixture.h"
#include "tilewright/written.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Options;
using test::Placement;

const Operator* const kGatedOperators[] = {&silu_and_mul_operator(), &gelu_and_mul_operator(),
                                           &gelu_tanh_and_mul_operator(),
                                           &swigluoai_and_mul_operator()};

class GatedActivation : public OperatorTest {
 protected:
  /// y of rows of one gate and one factor in f32.
  double of(const Operator& op, double gate, double up, const Options& options = {}) {
    return of(f32, op, gate, up, options);
  }
  double of(Type type, const Operator& op, double gate, double up, const Options& options = {}) {
    std::vector<double> row{gate, up};
    Array x = make_array("x", type, {1, 2}, row);
    return to_doubles(run(op, {x}, options).front()).front();
  }
};

TEST_F(GatedActivation, MatchesTheReferenceOverWidths) {
  for (std::int64_t d : {1, 7, 8, 63, 96, 129, 768, 1234, 2880, 3420}) {
    for (const Operator* op : kGatedOperators)
      run(*op, {random("x", bf16, {3, 2 * d}, 2)});
    run(relu2_operator(), {random("x", bf16, {3, d})});
    run(relu2_operator(), {random("x", bf16, {3, 2 * d})}, {{"gated", "true"}});
  }
}

TEST_F(GatedActivation, IsRightInEveryConfiguration) {
  run_candidates(silu_and_mul_operator(), {random("x", bf16, {5, 1040})});
}

/// By shifted words, but for the first and the last elements of each row.
TEST_F(GatedActivation, TakesManyElementsOfRowsThatBeginAnywhere) {
  constexpr std::int64_t kRows = 40, kOdd = 6607;
  for (std::int64_t d : {kOdd, kOdd + 3}) {
    for (Type type : {bf16, f16}) {
      const Array x = random("x", type, {kRows, 2 * d}, 2);
      run(silu_and_mul_operator(), {x});
      run(silu_and_mul_operator(), {x}, {{"layout", "swapped"}}, {.offset_elems = 1});
    }
  }
  const Array wide = random("x", f32, {kRows, 2 * kOdd}, 2);
  run(gelu_tanh_and_mul_operator(), {wide}, {{"clamp_gate", "after"}, {"limit", "1"}});
  for (std::int64_t offset = 0; offset < 8; ++offset)
    run(relu2_operator(), {random("x", bf16, {kRows, kOdd})}, {}, {.offset_elems = offset});
}

TEST_F(GatedActivation, ReadsShiftedWordsOfMemoryThatNothingWrites) {
  const auto shifted = [&](std::int64_t t, std::int64_t d, std::int64_t row) {
    const std::array<std::int64_t, 2> x_shape{t, 2 * d}, x_stride{row, 1}, y_shape{t, d};
    const GatedTensors tensors{.x = make_view(1 << 20, bf16, x_shape, x_stride),
                               .y = make_view(std::int64_t{1} << 40, bf16, y_shape)};
    return plan_gated_activation(device.properties(), tensors).config.shifted;
  };
  EXPECT_TRUE(shifted(64, 4097, 8194));
  EXPECT_TRUE(shifted(64, 4098, 8196));
  EXPECT_FALSE(shifted(64, 4100, 8200)) << "accesses of 8 bytes are wide enough";
  EXPECT_FALSE(shifted(64, 4097, 8197)) << "elements between rows may be another tensor's";
  EXPECT_FALSE(shifted(63, 4097, 8194)) << "few elements take more threads";
  constexpr std::int64_t kLong = (std::int64_t{1} << 30) + 1;
  EXPECT_TRUE(shifted(1, kLong - 2, 2 * kLong - 4));
  EXPECT_FALSE(shifted(1, kLong, 2 * kLong)) << "columns are counted in 32 bits";
}

TEST_F(GatedActivation, TakesNarrowAccessesOfFewElements) {
  DeviceProperties large;
  large.sm_count = 132;
  auto elems = [&](std::int64_t t, std::int64_t n, bool codes) {
    GatedTensors tensors{.x = make_view(1 << 20, bf16, std::array{t, n})};
    GatedOptions options;
    if (codes) {
      options.quant.coding.format = QuantFormat::fp8_block;
      tensors.quant.q = make_view(1 << 28, e4m3, std::array{t, n / 2});
      tensors.quant.scales = make_view(1 << 29, f32, std::array{t, n / 256});
    } else {
      tensors.y = make_view(1 << 28, bf16, std::array{t, n / 2});
    }
    return plan_gated_activation(large, tensors, options).config.tile.vector_elems;
  };
  EXPECT_EQ(elems(1, 24576, false), 2);
  EXPECT_EQ(elems(64, 4096, false), 2);
  EXPECT_EQ(elems(64, 8192, false), 4);
  EXPECT_EQ(elems(64, 24576, false), 8);
  EXPECT_EQ(elems(1, 24576, true), 8);
}

TEST_F(GatedActivation, SharesNarrowAccessesAmongFewThreads) {
  DeviceProperties large;
  large.sm_count = 132;
  auto accesses = [&](std::int64_t t, std::int64_t n) {
    const std::array<std::int64_t, 2> shape{t, n}, stride{n + 8, 1};  // not by shifted words
    const GatedTensors tensors{.x = make_view(1 << 20, bf16, shape, stride),
                               .y = make_view(std::int64_t{1} << 40, bf16, std::array{t, n / 2})};
    return plan_gated_activation(large, tensors).config.tile.accesses;
  };
  EXPECT_EQ(accesses(16384, 8194), 8);  // of one element
  EXPECT_EQ(accesses(16384, 8196), 4);
  EXPECT_EQ(accesses(16384, 8192), 1);
  EXPECT_EQ(accesses(64, 8194), 2);
  EXPECT_EQ(accesses(1, 8194), 1);
  run(silu_and_mul_operator(), {random("x", bf16, {600, 8194})}, {}, {.row_padding = 8});
}

TEST_F(GatedActivation, MatchesTheReferenceOverTypes) {
  for (Type type : {bf16, f16, f32}) {
    for (const Operator* op : kGatedOperators)
      run(*op, {random("x", type, {5, 512}, 3)});
    run(relu2_operator(), {random("x", type, {5, 512}, 3)});
  }
}

TEST_F(GatedActivation, MatchesTheReferenceOverRowCounts) {
  for (std::int64_t rows : {1, 2, 31, 130})
    run(silu_and_mul_operator(), {random("x", f16, {rows, 48})});
}

TEST_F(GatedActivation, TakesStridesAndAlignments) {
  for (const char* layout : {"halves", "swapped", "interleaved"}) {
    for (std::int64_t padding : {1, 2, 4, 8}) {
      for (std::int64_t offset : {0, 1, 2, 4}) {
        run(silu_and_mul_operator(), {random("x", bf16, {5, 96}), random("bias", f32, {96})},
            {{"layout", layout}}, Placement{.row_padding = padding, .offset_elems = offset});
      }
    }
  }
}

TEST_F(GatedActivation, TakesInterleavedGates) {
  for (std::int64_t d : {1, 7, 64, 100, 2880}) {
    for (Type type : {bf16, f32}) {
      run(swigluoai_and_mul_operator(), {random("x", type, {4, 2 * d}, 4)},
          {{"layout", "interleaved"}});
    }
  }
}

TEST_F(GatedActivation, AddsABiasAndWeighsRows) {
  for (const char* layout : {"halves", "swapped", "interleaved"}) {
    for (Type bias : {bf16, f32}) {
      run(swigluoai_and_mul_operator(),
          {random("x", bf16, {6, 128}), random("bias", bias, {128}, 1, 2),
           random("row_weight", f32, {6}, 1, 3)},
          {{"layout", layout}});
    }
  }
  run(relu2_operator(), {random("x", f16, {6, 64}), random("bias", f16, {64}, 1, 2)});
}

TEST_F(GatedActivation, AllowsForTheRoundingOfSumsWithABias) {
  // up + bias is about -1, where swigluoai adds 1; the gate is in the tail of gelu.
  for (unsigned seed = 1; seed < 4; ++seed) {
    const Array x = random("x", f32, {16, 512}, 2, seed);
    std::vector<double> bias(512, -5);
    std::fill(bias.begin() + 256, bias.end(), -1);
    for (const Operator* op : kGatedOperators)
      run(*op, {x, make_array("bias", f32, {512}, bias), random("row_weight", f32, {16}, 1, 3)});
  }
  // Without one they are right to the contract's units.
  HostTensors tensors;
  tensors.set(make_array("x", bf16, {1, 2}, std::vector<double>{1, 2}));
  gated_activation_reference({}, tensors);
  EXPECT_EQ(to_doubles(*allowance(tensors, "y")), std::vector<double>{0});
}

TEST_F(GatedActivation, FlushesNoSigmoid) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const Type type : {f16, bf16}) {
    for (const double gate : {-87.5, -88.0, -88.5})
      EXPECT_EQ(of(type, silu_and_mul_operator(), gate, kInf), -kInf) << gate;
  }
  EXPECT_EQ(of(f16, gelu_tanh_and_mul_operator(), -10.03125, kInf), -kInf);
  const Options reversed{{"alpha", "-1"}, {"limit", "100"}};
  EXPECT_GT(of(bf16, swigluoai_and_mul_operator(), 88.5, 0, reversed), 3e-37);
  const double y = of(bf16, silu_and_mul_operator(), -88, 3e38);
  EXPECT_NEAR(y, -88 * std::exp(-88.0) * 3e38, 1);
}

TEST_F(GatedActivation, VanishesWhereTheExponentialIsInfinite) {
  EXPECT_NEAR(of(silu_and_mul_operator(), -95, 1e30), -5.245e-10, 1e-12);
  for (const double gate : {-88.75, -95.0, -200.0})
    EXPECT_EQ(of(bf16, silu_and_mul_operator(), gate, 1), 0) << gate;
  of(relu2_operator(), 1e-23, 1e30, {{"gated", "true"}});
}

TEST_F(GatedActivation, TakesItsOptions) {
  Array x = random("x", bf16, {4, 256}, 4);
  for (const char* clamp : {"before", "after"})
    run(silu_and_mul_operator(), {x}, {{"clamp_gate", clamp}, {"limit", "1.5"}});
  run(silu_and_mul_operator(), {x}, {{"round_act", "true"}});
  run(swigluoai_and_mul_operator(), {x}, {{"alpha", "1"}, {"limit", "2"}});
}

TEST_F(GatedActivation, FoldsOuterModes) {
  Array y = run(silu_and_mul_operator(), {random("x", f16, {2, 3, 64})}).front();
  EXPECT_EQ(y.shape, (std::vector<std::int64_t>{2, 3, 32}));
  const std::int64_t none[] = {2, 0, 64}, half[] = {2, 0, 32}, strides[] = {64, 64, 1};
  const GatedTensors empty{.x = make_view(1 << 20, f16, none, strides),
                           .y = make_view(1 << 21, f16, half)};
  EXPECT_EQ(plan_gated_activation(DeviceProperties{}, empty).t, 0);
}

TEST_F(GatedActivation, KeepsNanThroughEveryClamp) {
  for (const Operator* op : kGatedOperators) {
    EXPECT_TRUE(std::isnan(of(*op, NAN, 1))) << op->schema.name;
    EXPECT_TRUE(std::isnan(of(*op, 1, NAN))) << op->schema.name;
  }
  EXPECT_TRUE(std::isnan(of(silu_and_mul_operator(), 1, NAN, {{"clamp_gate", "after"}})));
  EXPECT_TRUE(std::isnan(of(bf16, swigluoai_and_mul_operator(), NAN, 1)));
}

TEST_F(GatedActivation, GivesWhatTheFormulaDoesForInfinity) {
  for (Type type : {bf16, f32}) {
    const Operator& silu = silu_and_mul_operator();
    EXPECT_TRUE(std::isnan(of(type, silu, -INFINITY, 1)));  // -inf / inf
    EXPECT_EQ(of(type, silu, INFINITY, 2), INFINITY);
    EXPECT_TRUE(std::isnan(of(type, silu, INFINITY, 0)));
    EXPECT_EQ(of(type, gelu_and_mul_operator(), INFINITY, 2), INFINITY);
    EXPECT_EQ(of(type, gelu_tanh_and_mul_operator(), INFINITY, 2), INFINITY);
  }
}

TEST_F(GatedActivation, VanishesForLargeNegativeGates) {
  for (const Operator* op : kGatedOperators) {
    for (Type type : {bf16, f32}) {
      double y = of(type, *op, -100, 1);
      EXPECT_LE(std::fabs(y), 1e-38) << op->schema.name;
      EXPECT_TRUE(std::signbit(y)) << op->schema.name;
    }
  }
}

TEST_F(GatedActivation, KeepsRelativeAccuracyInTheTailOfGelu) {
  for (int i = 0; i < 30; ++i)  // against the reference, within 32 units of 2^-24
    of(gelu_and_mul_operator(), -1 - 0.37 * i, 1);
}

// An error of the exponent's argument, which is up to 50 here, would be as large a relative one.
TEST_F(GatedActivation, KeepsRelativeAccuracyInTheTailsOfSigmoids) {
  std::vector<double> gates;
  for (int i = 0; i < 1000; ++i)
    gates.insert(gates.end(), {1 - 0.013 * i, 1});
  const Array x = make_array("x", f32, {1, static_cast<std::int64_t>(gates.size())}, gates);
  run(gelu_tanh_and_mul_operator(), {x}, {{"layout", "interleaved"}});
  run(swigluoai_and_mul_operator(), {x}, {{"layout", "interleaved"}, {"alpha", "4.321"}});
}

TEST_F(GatedActivation, GivesGeluOfEveryGateOf16Bits) {
  for (Type type : {bf16, f16}) {
    Array x = make_array("x", type, {256, 512});
    const std::vector<double> ones(256, 1.0);
    const Array factors = make_array("", type, {256}, ones);
    for (std::size_t row = 0; row < 256; ++row) {
      std::byte* gates = x.bytes.data() + row * 1024;
      for (std::size_t i = 0; i < 256; ++i) {
        gates[2 * i] = static_cast<std::byte>(i);
        gates[2 * i + 1] = static_cast<std::byte>(row);
      }
      std::copy(factors.bytes.begin(), factors.bytes.end(), gates + 512);
    }
    run(gelu_and_mul_operator(), {x});
  }
}

TEST_F(GatedActivation, ClampsOnlyTheTopOfTheGateInSwigluoai) {
  const Operator& op = swigluoai_and_mul_operator();
  EXPECT_EQ(of(op, 100, 0), of(op, 7, 0));
  EXPECT_NE(of(op, -10, 0), of(op, -7, 0));
  EXPECT_EQ(of(op, 1, 100), of(op, 1, 7));
  EXPECT_EQ(of(op, 1, -100), of(op, 1, -7));
}

TEST_F(GatedActivation, OverflowsToInfinityInRelu2) {
  std::vector<double> values{1e20, -1e20, 0.5, -0.0};
  Array y = run(relu2_operator(), {make_array("x", bf16, {1, 4}, values)}).front();
  EXPECT_EQ(to_doubles(y), (std::vector<double>{INFINITY, 0, 0.25, 0}));
}

TEST_F(GatedActivation, GivesARowTheSameBitsAloneAndAmongOthers) {
  Array all = random("x", bf16, {70, 256}, 2);
  Array together = run(silu_and_mul_operator(), {all}).front();
  Array one = make_array("x", bf16, {1, 256});
  constexpr std::ptrdiff_t kBefore = 33, kBytesOfX = 512, kBytesOfY = 256;  // of a row
  const auto input = all.bytes.begin() + kBefore * kBytesOfX;
  one.bytes.assign(input, input + kBytesOfX);
  Array alone = run(silu_and_mul_operator(), {one}).front();
  EXPECT_TRUE(std::equal(alone.bytes.begin(), alone.bytes.end(),
                         together.bytes.begin() + kBefore * kBytesOfY));
}

TEST_F(GatedActivation, LaunchesNothingForNoRows) {
  run(silu_and_mul_operator(), {random("x", bf16, {0, 64})});
}

TEST_F(GatedActivation, RefusesWhatItCannotCompute) {
  const Operator& op = silu_and_mul_operator();
  EXPECT_EQ(refusal(op, {random("x", bf16, {4, 63})}),
            "silu_and_mul: x is bf16[4,63]; its rows must have an even number of elements");
  EXPECT_EQ(refusal(op, {random("x", bf16, {4, 0})}),
            "silu_and_mul: x is bf16[4,0]; its rows must have elements");
  EXPECT_EQ(refusal(op, {random("x", bf16, {4, 64}), random("bias", bf16, {32})}),
            "silu_and_mul: bias is bf16[32]; it must have 64 contiguous elements");
  EXPECT_EQ(refusal(op, {random("x", bf16, {4, 64}), random("bias", f16, {64})}),
            "silu_and_mul: bias has type f16; it must be x's type bf16 or f32");
  EXPECT_EQ(refusal(op, {random("x", bf16, {4, 64}), random("row_weight", f32, {5})}),
            "silu_and_mul: row_weight is f32[5]; it must have 4 contiguous elements");
  EXPECT_EQ(refusal(op, {random("x", bf16, {4, 64})}, {{"limit", "5"}}),
            "silu_and_mul: limit=5 with clamp_gate=none; it takes before or after");
  EXPECT_EQ(refusal(swigluoai_and_mul_operator(), {random("x", bf16, {4, 64})}, {{"limit", "0"}}),
            "swigluoai_and_mul: limit=0; it must be finite and above 0");
}

TEST_F(GatedActivation, RefusesOverlap) {
  Buffer memory(device, 4096);
  std::int64_t wide[] = {4, 64};
  std::int64_t narrow[] = {4, 32};
  View x = make_view(memory.address(), bf16, wide);
  try {
    gated_activation(stream, {x, {}, {}, make_view(memory.address(), bf16, narrow)});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "silu_and_mul: x and y overlap; they must be apart");
  }
  const std::int64_t one[] = {1};
  GatedOptions codes;
  codes.quant.coding.format = QuantFormat::fp8_tensor;
  try {
    gated_activation(stream,
                     {.x = x,
                      .y = make_view(memory.address() + 2048, bf16, narrow),
                      .quant = {.q = make_view(memory.address() + 3072, e4m3, narrow),
                                .scales = make_view(memory.address() + 3584, f32, one),
                                .scale = make_view(memory.address() + 2048, f32, one)}},
                     codes);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "silu_and_mul: scale and y overlap; they must be apart");
  }
  const std::int64_t near[] = {63, 1};
  try {
    gated_activation(stream, {make_view(memory.address(), bf16, wide, near),
                              {},
                              {},
                              make_view(memory.address() + 2048, bf16, narrow)});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "silu_and_mul: x is bf16[4,64]:[63,1], whose elements overlap; they must be apart");
  }
}

}  // namespace
}  // namespace tilewright
