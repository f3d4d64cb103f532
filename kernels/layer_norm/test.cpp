// SPDX-License-Identifier: Apache-2.0
// layer_norm against its float64 reference, and rows far from 0 that a naive variance fails.
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/layer_norm/reference.h"
#include "operator_fixture.h"

#include <cmath>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Placement;

class LayerNorm : public OperatorTest {
 protected:
  const Operator& op = layer_norm_operator();

  static std::vector<Array> inputs(Type type, std::vector<std::int64_t> shape) {
    std::int64_t h = shape.back();
    return {random("x", type, std::move(shape), 2, 1), random("w", type, {h}, 1, 2),
            random("bias", type, {h}, 1, 3)};
  }

  /// y of one row, launched without the operator's comparison.
  std::vector<double> normalised(const Array& row) {
    Buffer x(device, static_cast<std::int64_t>(row.bytes.size()));
    x.upload(row.bytes);
    Buffer y(device, row.shape[1] * 4);
    layer_norm(stream, {.x = make_view(x.address(), row.type, row.shape),
                        .y = make_view(y.address(), f32, row.shape)});
    stream.synchronize();
    std::vector<float> values = download<float>(y);
    return {values.begin(), values.end()};
  }
};

TEST_F(LayerNorm, MatchesTheReferenceOverWidths) {
  for (std::int64_t h : {2, 7, 8, 63, 96, 100, 1234, 2880, 3420, 4096, 7168})
    run(op, inputs(bf16, {3, h}));
}

TEST_F(LayerNorm, MatchesTheReferenceOverTypes) {
  for (Type x : {bf16, f16, f32}) {
    run(op, {random("x", x, {5, 256}), random("w", f32, {256}), random("bias", f32, {256})});
    run(op, inputs(x, {3, 256}), {{"out_type", "f32"}});
  }
}

TEST_F(LayerNorm, MatchesTheReferenceOverRowCounts) {
  for (std::int64_t rows : {1, 2, 5, 64, 131}) {
    for (std::int64_t h : {16, 128, 512})
      run(op, inputs(bf16, {rows, h}));
  }
}

TEST_F(LayerNorm, IsRightInEveryConfiguration) {
  for (std::int64_t h : {128, 1792, 2880})
    run_candidates(op, inputs(bf16, {3, h}));
}

TEST_F(LayerNorm, TakesWeightAndBiasSeparately) {
  std::vector<Array> all = inputs(bf16, {4, 100});
  run(op, {all[0]});
  run(op, {all[0], all[1]});
  run(op, {all[0], all[2]});
  run(op, all, {{"weight_bias", "1"}, {"eps", "1e-3"}});
  run(op, {all[0], all[2]}, {{"weight_bias", "1"}});
}

TEST_F(LayerNorm, AddsTheResidualFirst) {
  for (const char* rounding : {"round_first", "keep_f32"}) {
    for (std::int64_t h : {100, 512, 40000}) {
      std::vector<Array> given = inputs(bf16, {3, h});
      given.push_back(random("residual", h == 512 ? f32 : bf16, {3, h}, 1, 7));
      run(op, given, {{"rounding", rounding}});
    }
  }
}

TEST_F(LayerNorm, AddsAThirdOperandBehindTheResidual) {
  for (const char* rounding : {"round_first", "keep_f32"}) {
    for (std::int64_t h : {100, 512, 40000}) {
      std::vector<Array> given = inputs(bf16, {3, h});
      given.push_back(random("residual", bf16, {3, h}, 1, 7));
      given.push_back(random("extra", h == 512 ? f32 : bf16, {3, h}, 1, 8));
      run(op, given, {{"rounding", rounding}});
    }
  }
}

TEST_F(LayerNorm, TakesMeanAndVarianceOfTheFirstElements) {
  for (std::int64_t h : {64, 1000, 1024, 40000, 70000}) {
    for (std::int64_t partial : {1, 7, 64}) {
      const std::string count = std::to_string(partial);
      run(op, inputs(bf16, {3, h}), {{"partial", count}});
      std::vector<Array> summed = inputs(f32, {2, h});
      summed.push_back(random("residual", f32, {2, h}, 1, 7));
      run(op, summed, {{"partial", count}, {"quant", "fp8_token"}});
    }
  }
}

TEST_F(LayerNorm, LooksForMomentsInTheFirstElementsOnly) {
  std::vector<double> values{1, 3, 2, 2, NAN, INFINITY, 1e30, 5};
  const std::vector<double> y =
      to_doubles(run(op, {make_array("x", f32, {1, 8}, values)}, {{"partial", "4"}}).front());
  EXPECT_NEAR(y[0], -std::sqrt(2), 1e-4);
  EXPECT_TRUE(std::isnan(y[4]));
  EXPECT_EQ(y[5], INFINITY);
  EXPECT_NEAR(y[7], 3 * std::sqrt(2), 1e-4);
}

TEST_F(LayerNorm, RoundsBeforeTheWeightOnDemand) {
  for (Type type : {bf16, f16, f32}) {
    run(op, inputs(type, {4, 256}), {{"cast_before_weight", "true"}});
    run(op, inputs(type, {2, 66000}), {{"cast_before_weight", "true"}});
  }
}

TEST_F(LayerNorm, WritesTheFactorOfEachRow) {
  for (std::int64_t h : {8, 100, 4096, 70000}) {
    const Array x = random("x", bf16, {3, h}, 2, 1);
    HostTensors tensors;
    tensors.set(x);
    layer_norm_reference({}, tensors);
    Buffer memory(device, static_cast<std::int64_t>(x.bytes.size())), y(device, 3 * h * 2),
        rstd(device, 12);
    memory.upload(x.bytes);
    layer_norm(stream, {.x = make_view(memory.address(), bf16, x.shape),
                        .y = make_view(y.address(), bf16, x.shape),
                        .rstd = make_view(rstd.address(), f32, std::array<std::int64_t, 1>{3})});
    stream.synchronize();
    const std::vector<double> expected = to_doubles(tensors.at("rstd"));
    const std::vector<float> factors = download<float>(rstd);
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(static_cast<double>(factors[i]) / expected[i], 1, 40 * 0x1p-24) << h;
  }
}

TEST_F(LayerNorm, RefusesWhatItHasNoSumOrRowFor) {
  const Array x = random("x", bf16, {3, 64});
  EXPECT_EQ(refusal(op, {x, random("extra", bf16, {3, 64})}),
            "layer_norm: extra without residual; give residual, or extra as residual");
  EXPECT_EQ(refusal(op, {x}, {{"partial", "65"}}),
            "layer_norm: partial=65; it must be 0 or at most the row's 64 elements");
}

TEST_F(LayerNorm, ReadsLongRowsThrice) {
  run(op, inputs(bf16, {2, 70000}));
  run(op, inputs(f32, {1, 65537}));
}

TEST_F(LayerNorm, FindsTheMeanOfLongRowsOfEqualNumbers) {
  constexpr std::int64_t kElems = 1048575;
  const Array x = make_array("x", f32, {1, kElems},
                             std::vector<double>(static_cast<std::size_t>(kElems), 1.92));
  for (double y : to_doubles(run(op, {x}).front()))
    ASSERT_LE(std::abs(y), 0x1p-20 * 1.92 / std::sqrt(1e-5));
}

TEST_F(LayerNorm, TakesStridesAndAlignments) {
  for (std::int64_t padding : {1, 4, 8}) {
    for (std::int64_t offset : {0, 1, 2}) {
      run(op, inputs(bf16, {9, 200}), {},
          Placement{.row_padding = padding, .offset_elems = offset});
    }
  }
}

TEST_F(LayerNorm, NormalisesInPlace) {
  Array x = random("x", bf16, {4, 256});
  Array expected = run(op, {x}).front();
  Buffer memory(device, static_cast<std::int64_t>(x.bytes.size()));
  memory.upload(x.bytes);
  View view = make_view(memory.address(), bf16, x.shape);
  layer_norm(stream, {.x = view, .y = view});
  stream.synchronize();
  EXPECT_EQ(download<std::byte>(memory), expected.bytes);
}

TEST_F(LayerNorm, KeepsTheVarianceOfRowsFarFromZero) {
  for (const std::int64_t h : {1024, 17000}) {
    Array x = random("x", f32, {1, h}, 0.01);
    std::vector<double> values = to_doubles(x);
    for (double& value : values)
      value += 1e4;
    x = make_array("x", f32, {1, h}, values);
    run_candidates(op, {x, random("w", f32, {h}, 1, 2), random("bias", f32, {h}, 1, 3)});
    // The mean is rounded to 1e-3, a tenth of a deviation: its square would be 1 % of the variance.
    HostTensors reference;
    reference.set(x);
    layer_norm_reference({}, reference);
    for (const Array& out : run(op, {x})) {
      if (out.name != "rstd") continue;
      const double factor = to_doubles(reference.at("rstd")).front();
      EXPECT_NEAR(to_doubles(out).front(), factor, 1e-5 * factor);
    }
  }
}

TEST_F(LayerNorm, TakesTheVarianceOfAPartFarFromZero) {
  std::vector<double> values(1000, -1e4);
  const std::vector<double> near = to_doubles(random("x", f32, {400}, 0.01));
  for (std::size_t i = 0; i < near.size(); ++i)
    values[i] = 1e4 + near[i];
  run(op, {make_array("x", f32, {1, 1000}, values)}, {{"partial", "400"}});
}

TEST_F(LayerNorm, GivesTheBitsOfANormOfTheStoredSum) {
  struct Case {
    Type x, residual;
    std::int64_t h;
  };
  for (const Case& c : {Case{bf16, bf16, 2048}, {bf16, f32, 5120}, {bf16, bf16, 40960}}) {
    const Array w = random("w", f32, {c.h}, 1, 3);
    const std::vector<Array> outputs =
        run(op, {random("x", c.x, {3, c.h}), random("residual", c.residual, {3, c.h}), w},
            {{"out_type", "f32"}});
    Array sum = outputs[1];
    sum.name = "x";
    EXPECT_EQ(run(op, {sum, w}, {{"out_type", "f32"}}).front().bytes, outputs[0].bytes) << c.h;
  }
}

TEST_F(LayerNorm, TellsNeighboursInBf16Apart) {
  std::vector<double> values(64, 256);
  for (std::size_t i = 1; i < values.size(); i += 2)
    values[i] = 258;
  std::vector<double> y = normalised(make_array("x", bf16, {1, 64}, values));
  for (std::size_t i = 0; i < y.size(); ++i)
    EXPECT_NEAR(y[i], i % 2 == 0 ? -1 : 1, 1e-5) << i;
}

TEST_F(LayerNorm, GivesTheBiasForAConstantRow) {
  Array x = make_array("x", bf16, {1, 64}, std::vector<double>(64, 3.25));
  Array bias = random("bias", bf16, {64});
  Array y = run(op, {x, bias}).front();
  EXPECT_EQ(to_doubles(y), to_doubles(bias));
}

TEST_F(LayerNorm, SpreadsNanAndInfinityOverTheRow) {
  for (double special : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    std::vector<double> row{1, special, 2, 3};
    for (double y : normalised(make_array("x", f32, {1, 4}, row)))
      EXPECT_TRUE(std::isnan(y)) << special;
  }
}

TEST_F(LayerNorm, GivesARowTheSameBitsAloneAndAmongOthers) {
  Array all = random("x", bf16, {70, 1024}, 2);
  Array together = run(op, {all}).front();
  for (std::int64_t row : {0, 33, 69}) {
    Array one = make_array("x", bf16, {1, 1024});
    auto begin = all.bytes.begin() + row * 2048;
    one.bytes.assign(begin, begin + 2048);
    Array alone = run(op, {one}).front();
    EXPECT_TRUE(
        std::equal(alone.bytes.begin(), alone.bytes.end(), together.bytes.begin() + row * 2048))
        << "row " << row;
  }
}

TEST_F(LayerNorm, LaunchesNothingForNoRows) { run(op, inputs(bf16, {0, 64})); }

TEST_F(LayerNorm, RefusesWhatItCannotNormalise) {
  EXPECT_EQ(refusal(op, {random("x", bf16, {4, 64}), random("bias", bf16, {63})}),
            "layer_norm: bias is bf16[63]; it must have 64 contiguous elements");
  EXPECT_EQ(refusal(op, {random("x", bf16, {4, 64}), random("bias", f16, {64})}),
            "layer_norm: bias has type f16; it must be x's type bf16 or f32");
  View x = make_view(4096, bf16, std::array<std::int64_t, 2>{4, 64});
  View sum = make_view(8192, bf16, std::array<std::int64_t, 2>{4, 64});
  try {
    layer_norm(stream, {.x = x, .y = x, .residual_out = sum});
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "layer_norm: residual_out without residual; give residual too");
  }
}

}  // namespace
}  // namespace tilewright
