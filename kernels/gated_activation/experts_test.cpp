// SPDX-License-Identifier: Apache-2.0
// Activations of experts' rows: those behind an expert's number stay as they are and unread, and
// experts have an alpha and a limit of their own.
#include "kernels/gated_activation/gated_activation.h"
#include "kernels/quantize/experts_fixture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tilewright {
namespace {

using test::kQuantFormats;
using test::kScalesOfGroups;
using test::Options;
using test::Placement;
using test::ScalesOfGroups;

const Operator* const kMaskedOperators[] = {&silu_and_mul_operator(), &gelu_and_mul_operator(),
                                            &gelu_tanh_and_mul_operator(),
                                            &swigluoai_and_mul_operator(), &relu2_operator()};

class ExpertActivation : public test::ExpertsTest {
 protected:
  static Array numbers(const char* name, const std::vector<double>& values) {
    return make_array(name, f32, {static_cast<std::int64_t>(values.size())}, values);
  }
};

const std::vector<double> kCounts{3, 0, 7, 1};  // of 7 rows

TEST_F(ExpertActivation, LeavesRowsAloneThatDoNotCount) {
  for (const Operator* op : kMaskedOperators) {
    for (Type type : {bf16, f32}) {
      for (std::int64_t d : {1, 63, 256, 1000})
        run_masked(*op, {rows(type, 7, 2 * d, kCounts)}, kCounts);
    }
  }
}

TEST_F(ExpertActivation, QuantisesOnlyRowsThatCount) {
  for (const char* format : kQuantFormats) {
    for (const char* from : {"f32", "via_x_dtype"}) {
      std::vector<Array> inputs{rows(bf16, 7, 512, kCounts)};
      for (const Array& scale : scales_for(format))
        inputs.push_back(scale);
      run_masked(silu_and_mul_operator(), inputs, kCounts,
                 {{"quant", format}, {"quant_from", from}});
    }
  }
}

TEST_F(ExpertActivation, GivesEveryExpertScalesInTheLayout) {
  for (const ScalesOfGroups& each : kScalesOfGroups) {
    for (std::int64_t t : {7, 130}) {
      std::vector<double> counts = kCounts;
      counts[2] = static_cast<double>(t);
      counts[3] = static_cast<double>(t - 1);
      std::vector<Array> inputs{rows(bf16, t, 1280, counts)};  // 5 groups of 128
      for (const Array& scale : scales_for(each.format))
        inputs.push_back(scale);
      run_masked(
          silu_and_mul_operator(), inputs, counts,
          {{"quant", each.format}, {"scale_layout", each.layout}, {"scale_type", each.scale_type}});
    }
  }
}

TEST_F(ExpertActivation, EqualsEachExpertAlone) {
  for (const char* format : {"none", "fp8_token", "fp8_block", "mxfp4"}) {
    const Array all = rows(bf16, 7, 512, {7, 7});
    const std::vector<Array> together =
        run_masked(silu_and_mul_operator(), {all}, {7, 7}, {{"quant", format}});
    for (std::size_t e = 0; e < 2; ++e) {
      Array one = make_array("x", bf16, {7, 512});
      const auto begin = all.bytes.begin() + static_cast<std::ptrdiff_t>(e * 7168);
      one.bytes.assign(begin, begin + 7168);
      const std::vector<Array> alone = run(silu_and_mul_operator(), {one}, {{"quant", format}});
      for (std::size_t i = 0; i < alone.size(); ++i) {
        const std::vector<std::byte>& bytes = alone[i].bytes;
        EXPECT_TRUE(
            std::equal(bytes.begin(), bytes.end(),
                       together[i].bytes.begin() + static_cast<std::ptrdiff_t>(e * bytes.size())))
            << format << ' ' << alone[i].name;
      }
    }
  }
}

TEST_F(ExpertActivation, TakesAnAlphaAndALimitOfEachExpert) {
  const Array alphas = numbers("expert_alpha", {1.702, 1, 0.5, -1});
  const Array limits = numbers("expert_limit", {7, 0.5, 2, 1e30});
  const Array x = random("x", bf16, {4, 5, 256}, 4);
  const Operator& oai = swigluoai_and_mul_operator();
  run(oai, {x, alphas});
  run(oai, {x, limits}, {{"alpha", "1.5"}});
  run(oai, {x, alphas, limits}, {{"layout", "interleaved"}});
  run(oai, {x, alphas, limits}, {{"quant", "fp8_token"}});
  for (const char* clamp : {"before", "after"})
    run(silu_and_mul_operator(), {x, limits}, {{"clamp_gate", clamp}});
  run_masked(oai, {rows(f32, 7, 128, kCounts), alphas, limits}, kCounts, {{"quant", "mxfp8"}});
}

TEST_F(ExpertActivation, EqualsTheOptionsWhereExpertsAgree) {
  const Array x = random("x", bf16, {3, 5, 256}, 4);
  Array flat = x;
  flat.shape = {15, 256};
  const Operator& oai = swigluoai_and_mul_operator();
  const Array each =
      run(oai, {x, numbers("expert_alpha", {1.5, 1.5, 1.5}), numbers("expert_limit", {2, 2, 2})})
          .front();
  EXPECT_EQ(each.bytes, run(oai, {flat}, {{"alpha", "1.5"}, {"limit", "2"}}).front().bytes);
}

TEST_F(ExpertActivation, AddsBiasesAndWeighsTheRowsOfAllExperts) {
  for (const char* format : {"none", "fp8_block"}) {
    run_masked(swigluoai_and_mul_operator(),
               {rows(bf16, 7, 256, kCounts), random("bias", f32, {256}, 1, 2),
                random("row_weight", f32, {28}, 1, 3)},
               kCounts, {{"layout", "interleaved"}, {"quant", format}});
  }
}

TEST_F(ExpertActivation, TakesRowsLongerThanRegisters) {
  const std::vector<double> counts{1, 0};
  run_masked(silu_and_mul_operator(), {rows(bf16, 2, std::int64_t{2} * 65544, counts)}, counts,
             {{"quant", "fp8_token"}});
}

TEST_F(ExpertActivation, TakesAlignmentsAndRowsApart) {
  for (std::int64_t padding : {1, 2, 16}) {
    for (std::int64_t offset : {0, 1, 8}) {
      const Placement placement{.row_padding = padding, .offset_elems = offset};
      run_masked(silu_and_mul_operator(), {rows(bf16, 7, 192, kCounts)}, kCounts, {}, placement);
      run_masked(silu_and_mul_operator(), {rows(bf16, 7, 256, kCounts)}, kCounts,
                 {{"quant", "fp8_token"}}, placement);
    }
  }
}

TEST_F(ExpertActivation, IsRightInEveryConfiguration) {
  const std::vector<double> counts{5, 2};
  for (const char* format : {"none", "fp8_token", "fp8_block"}) {
    run_candidates(silu_and_mul_operator(), {rows(bf16, 5, 1280, counts), tokens(counts)},
                   {{"quant", format}});
  }
}

TEST_F(ExpertActivation, TakesMoreRowsThanAGridIsHigh) {
  const std::vector<double> counts{2, 70'000};
  run_masked(silu_and_mul_operator(), {rows(bf16, 70'000, 2, counts)}, counts);
}

/// Expert strides of their own: x and y are parts of wider tensors, and nothing that a masked row
/// has was ever written.
TEST_F(ExpertActivation, ReadsNothingOfRowsThatDoNotCount) {
  constexpr std::int64_t kExperts = 2, kRows = 4, kColumns = 64, kApart = 512;
  Buffer x(device, kExperts * kApart * 2), y(device, kExperts * kApart * 2), n(device, 8);
  const Array first = random("x", bf16, {1, kColumns});
  x.upload(first.bytes, kApart * 2);  // row 0 of expert 1 alone
  n.upload(tokens({0, 1}).bytes);
  y.fill(kUntouched);
  const std::array<std::int64_t, 3> wide{kExperts, kRows, kColumns}, narrow{kExperts, kRows, 32};
  const std::array<std::int64_t, 3> stride{kApart, 96, 1};
  gated_activation(
      stream, {.x = make_view(x.address(), bf16, wide, stride),
               .y = make_view(y.address(), bf16, narrow, stride),
               .tokens_per_expert = make_view(n.address(), s32, std::array<std::int64_t, 1>{2})});
  stream.synchronize();
  const std::vector<std::byte> written = download<std::byte>(y);
  const Array alone = run(silu_and_mul_operator(), {first}).front();
  EXPECT_TRUE(std::equal(alone.bytes.begin(), alone.bytes.end(), written.begin() + kApart * 2));
  EXPECT_EQ(std::count(written.begin(), written.end(), kUntouched),
            static_cast<std::ptrdiff_t>(written.size() - alone.bytes.size()));
}

TEST_F(ExpertActivation, WritesTheGivenScaleWithoutRows) {
  const std::vector<double> none{0, 0};
  run_masked(silu_and_mul_operator(), {rows(bf16, 3, 64, none), scales_for("fp8_tensor").front()},
             none, {{"quant", "fp8_tensor"}});
  run_masked(silu_and_mul_operator(),
             {random("x", bf16, {2, 0, 64}), scales_for("fp8_tensor").front()}, none,
             {{"quant", "fp8_tensor"}});
}

TEST_F(ExpertActivation, RefusesWhatExpertsDoNotHave) {
  const Operator& silu = silu_and_mul_operator();
  const Operator& oai = swigluoai_and_mul_operator();
  const Array x = random("x", bf16, {2, 3, 64});
  EXPECT_EQ(refusal(silu, {random("x", bf16, {6, 64}), tokens({1, 1})}),
            "silu_and_mul: x is bf16[6,64]; with experts it must have the modes [E, T, N]");
  EXPECT_EQ(refusal(silu, {x, tokens({1, 1, 1})}),
            "silu_and_mul: tokens_per_expert is s32[3]; it must have 2 contiguous elements");
  EXPECT_EQ(refusal(silu, {x, tokens({1, 4})}),
            "silu_and_mul: tokens_per_expert[1] is 4.000000; it must be 0 to the 3 rows of an "
            "expert");
  EXPECT_EQ(refusal(silu, {x, numbers("expert_limit", {1, 2})}),
            "silu_and_mul: expert_limit is given with clamp_gate=none; it takes before or after");
  EXPECT_EQ(refusal(oai, {x, numbers("expert_limit", {1, 0})}),
            "swigluoai_and_mul: expert_limit[1] is 0.000000; it must be finite and above 0");
  EXPECT_EQ(refusal(oai, {x, numbers("expert_alpha", {1, 2})}, {{"alpha", "1"}}),
            "swigluoai_and_mul: alpha=1 with expert_alpha, which each expert has in its place");
  EXPECT_EQ(refusal(silu, {x, tokens({1, 1}), random("row_weight", f32, {3})}),
            "silu_and_mul: row_weight is f32[3]; it must have 6 contiguous elements");
  EXPECT_EQ(refusal(silu, {random("x", bf16, {2, 3, 63}), tokens({1, 1})}),
            "silu_and_mul: x is bf16[3,63]; its rows must have an even number of elements (of "
            "each expert)");
}

}  // namespace
}  // namespace tilewright
