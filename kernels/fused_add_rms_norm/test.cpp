// SPDX-License-Identifier: Apache-2.0
// fused_add_rms_norm against its float64 reference, and against an add followed by rms_norm.
#include "kernels/fused_add_rms_norm/fused_add_rms_norm.h"
#include "kernels/rms_norm/rms_norm.h"
#include "operator_fixture.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Placement;

class FusedAddRmsNorm : public OperatorTest {
 protected:
  const Operator& op = fused_add_rms_norm_operator();

  static std::vector<Array> inputs(Type type, std::vector<std::int64_t> shape) {
    std::int64_t h = shape.back();
    return {random("x", type, shape, 2, 1), random("residual", type, shape, 3, 2),
            random("w", type, {h}, 1, 3)};
  }

  Buffer uploaded(const Array& array) {
    Buffer memory(device, static_cast<std::int64_t>(array.bytes.size()));
    memory.upload(array.bytes);
    return memory;
  }

  std::string refused(const FusedAddRmsNormTensors& tensors) {
    try {
      fused_add_rms_norm(stream, tensors);
    } catch (const Error& error) {
      return error.message();
    }
    return "accepted";
  }
};

TEST_F(FusedAddRmsNorm, MatchesTheReferenceOverWidths) {
  for (std::int64_t h : {1, 7, 8, 63, 96, 100, 1234, 2880, 3420, 4096, 7168})
    run(op, inputs(bf16, {3, h}));
}

TEST_F(FusedAddRmsNorm, MatchesTheReferenceOverTypes) {
  for (Type x : {bf16, f16, f32}) {
    for (Type residual : {x, f32}) {
      run(op, {random("x", x, {5, 256}), random("residual", residual, {5, 256}, 1, 2),
               random("w", f32, {256})});
    }
    run(op, inputs(x, {3, 256}), {{"out_type", "f32"}});
  }
}

TEST_F(FusedAddRmsNorm, MatchesTheReferenceOverRowCounts) {
  for (std::int64_t rows : {1, 2, 5, 64, 131}) {
    for (std::int64_t h : {16, 128, 512})
      run(op, inputs(bf16, {rows, h}));
  }
}

TEST_F(FusedAddRmsNorm, NormalisesTheUnroundedSumIfAsked) {
  std::vector<Array> given = inputs(bf16, {4, 512});
  Array stored = run(op, given).front();
  Array kept = run(op, given, {{"rounding", "keep_f32"}}).front();
  EXPECT_NE(stored.bytes, kept.bytes);
}

TEST_F(FusedAddRmsNorm, AddsAThirdOperandLast) {
  for (const char* rounding : {"round_first", "keep_f32"}) {
    std::vector<Array> given = inputs(f32, {4, 100});
    given.push_back(random("extra", f32, {4, 100}, 1e4, 9));  // the order of the sum shows
    run(op, given, {{"rounding", rounding}});
  }
}

TEST_F(FusedAddRmsNorm, ReadsLongRowsTwice) {
  for (const char* rounding : {"round_first", "keep_f32"})
    run(op, inputs(bf16, {2, 70000}), {{"rounding", rounding}});
}

TEST_F(FusedAddRmsNorm, TakesStridesAndAlignments) {
  for (std::int64_t padding : {1, 4, 8}) {
    for (std::int64_t offset : {0, 1, 2}) {
      run(op, inputs(bf16, {9, 200}), {},
          Placement{.row_padding = padding, .offset_elems = offset});
    }
  }
}

TEST_F(FusedAddRmsNorm, FoldsOuterModes) { run(op, inputs(f16, {2, 3, 64})); }

TEST_F(FusedAddRmsNorm, TakesItsOptions) {
  std::vector<Array> given = inputs(bf16, {4, 512});
  run(op, given, {{"weight_bias", "1"}, {"eps", "1e-5"}});
  run(op, given, {{"cast_before_weight", "true"}});
  run(op, given, {{"partial", "128"}});
}

TEST_F(FusedAddRmsNorm, GivesWhatRmsNormGivesForTheStoredSum) {
  std::vector<Array> given = inputs(bf16, {6, 1000});
  std::vector<Array> outputs = run(op, given);
  Array sum = outputs[1];
  sum.name = "x";
  EXPECT_EQ(run(rms_norm_operator(), {sum, given[2]}).front().bytes, outputs[0].bytes);
}

/// Whatever else a thread holds, and whichever types are added.
TEST_F(FusedAddRmsNorm, GivesTheBitsOfRmsNormInF32ForEveryWidthAndType) {
  struct Case {
    Type x, residual;
    std::int64_t h;
    bool third;
  };
  for (const Case& c : {Case{bf16, bf16, 5120, false},
                        {f16, f32, 8192, false},
                        {bf16, f32, 5120, true},
                        {f32, f32, 20480, true},
                        {bf16, bf16, 40960, true},
                        {bf16, bf16, 40968, false},
                        {bf16, bf16, 4097, true}}) {
    SCOPED_TRACE(std::string(name(c.x)) + " " + std::string(name(c.residual)) + " " +
                 std::to_string(c.h));
    std::vector<Array> given{random("x", c.x, {3, c.h}), random("residual", c.residual, {3, c.h}),
                             random("w", f32, {c.h}, 1, 3)};
    if (c.third) given.push_back(random("extra", c.x, {3, c.h}, 1, 4));
    const std::vector<Array> outputs = run(op, given, {{"out_type", "f32"}});
    Array sum = outputs[1];
    sum.name = "x";
    const Array alone = run(rms_norm_operator(), {sum, given[2]}, {{"out_type", "f32"}}).front();
    EXPECT_EQ(alone.bytes, outputs[0].bytes);
  }
}

// Pairs of 16-bit numbers are added at once: the bits of a sum in f32 that is rounded then.
TEST_F(FusedAddRmsNorm, RoundsSumsOfAllMagnitudesAsFromF32) {
  constexpr std::int64_t kRows = 8, kColumns = 512;
  const struct {
    Type type;
    double least, most;  // exponents of two
  } ranges[] = {{bf16, -136, 50}, {f16, -26, 14}};
  for (const auto& range : ranges) {
    std::mt19937 engine(1);
    std::uniform_real_distribution<double> exponent(range.least, range.most), close(-20, 20);
    std::vector<double> a, b, sums;
    for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
      const double e = exponent(engine), sign = i % 2 == 0 ? 1 : -1;
      a.push_back(std::exp2(e));
      b.push_back(sign * std::exp2(std::min(e + close(engine), range.most)));
    }
    const Array x = make_array("x", range.type, {kRows, kColumns}, a);
    const Array residual = make_array("residual", range.type, {kRows, kColumns}, b);
    a = to_doubles(x);
    b = to_doubles(residual);
    for (std::size_t i = 0; i < a.size(); ++i)
      sums.push_back(static_cast<float>(a[i]) + static_cast<float>(b[i]));
    const Array expected = make_array("residual_out", range.type, {kRows, kColumns}, sums);
    EXPECT_EQ(run(op, {x, residual})[1].bytes, expected.bytes) << name(range.type);
  }
}

TEST_F(FusedAddRmsNorm, WorksInPlace) {
  for (std::int64_t h : {256, 40000}) {  // held in registers, and read twice
    for (SumRounding rounding : {SumRounding::round_first, SumRounding::keep_f32}) {
      std::vector<Array> given = inputs(bf16, {3, h});
      const char* word = rounding == SumRounding::keep_f32 ? "keep_f32" : "round_first";
      std::vector<Array> expected = run(op, given, {{"rounding", word}});
      Buffer x = uploaded(given[0]), residual = uploaded(given[1]), w = uploaded(given[2]);
      std::int64_t shape[] = {3, h};
      View x_view = make_view(x.address(), bf16, shape);
      View residual_view = make_view(residual.address(), bf16, shape);
      View w_view = make_view(w.address(), bf16, std::span(shape).subspan(1));
      fused_add_rms_norm(stream,
                         {.x = x_view,
                          .residual = residual_view,
                          .w = w_view,
                          .extra = {},
                          .y = x_view,
                          .residual_out = residual_view},
                         {.rounding = rounding});
      stream.synchronize();
      EXPECT_EQ(download<std::byte>(x), expected[0].bytes);
      EXPECT_EQ(download<std::byte>(residual), expected[1].bytes);
    }
  }
}

TEST_F(FusedAddRmsNorm, SpreadsNanAndInfinity) {
  Array x = make_array("x", f32, {1, 4}, std::vector<double>{1, NAN, 2, 3});
  Array residual = make_array("residual", f32, {1, 4}, std::vector<double>{1, 1, 1, 1});
  run(op, {x, residual});
  run(op, {make_array("x", f32, {1, 4}, std::vector<double>{1, INFINITY, 2, 3}), residual});
  Array opposite = make_array("residual", f32, {1, 4},
                              std::vector<double>{1, -static_cast<double>(INFINITY), 1, 1});
  run(op, {make_array("x", f32, {1, 4}, std::vector<double>{1, INFINITY, 2, 3}), opposite});
}

TEST_F(FusedAddRmsNorm, OverflowsTheStoredSumOfF16ToInfinity) {
  std::vector<double> large{60000, 1, 2, 3};
  std::vector<Array> outputs =
      run(op, {make_array("x", f16, {1, 4}, large), make_array("residual", f16, {1, 4}, large)});
  EXPECT_TRUE(std::isinf(to_doubles(outputs[1]).front()));
}

TEST_F(FusedAddRmsNorm, LaunchesNothingForNoRows) { run(op, inputs(bf16, {0, 64})); }

TEST_F(FusedAddRmsNorm, RefusesWhatItCannotNormalise) {
  EXPECT_EQ(refusal(op, {random("x", bf16, {4, 64}), random("residual", bf16, {3, 64})}),
            "fused_add_rms_norm: x is bf16[4,64] and residual bf16[3,64]; the shapes must be "
            "equal");
  EXPECT_EQ(refusal(op, {random("x", bf16, {4, 64}), random("residual", f16, {4, 64})}),
            "fused_add_rms_norm: residual has type f16; it must be x's type bf16 or f32");
}

TEST_F(FusedAddRmsNorm, RefusesOperandsThatShareMemory) {
  Buffer memory(device, 4096);
  std::int64_t shape[] = {2, 64};
  auto at = [&](std::uint64_t bytes) { return make_view(memory.address() + bytes, bf16, shape); };
  EXPECT_EQ(refused({at(0), at(0), {}, {}, at(1024), at(2048)}),
            "fused_add_rms_norm: x and residual overlap; they must be apart");
  EXPECT_EQ(refused({at(0), at(1024), {}, {}, at(2048), at(0)}),
            "fused_add_rms_norm: x and residual_out overlap; they must be apart");
  EXPECT_EQ(refused({at(0), at(1024), {}, {}, at(2048), at(1152)}),
            "fused_add_rms_norm: residual and residual_out overlap without being the same; give "
            "residual_out memory of its own, or residual itself");
}

}  // namespace
}  // namespace tilewright
