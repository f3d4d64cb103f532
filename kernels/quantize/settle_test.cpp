// SPDX-License-Identifier: Apache-2.0
// Scales of quantised outputs whose rounding errors of the operator decide: what a reference takes
// from the outputs, and what it does not.
#include "kernels/gated_activation/gated_activation.h"
#include "kernels/quantize/quant_output_fixture.h"
#include "kernels/rms_norm/rms_norm.h"
#include "tilewright/written.h"

#include <cmath>
#include <utility>

namespace tilewright {
namespace {

using test::Options;

constexpr double kEncodeScale = 600;

struct Boundary {
  const char* what;
  Options options;
  std::int64_t group;
  double largest;  ///< of a group: its scale is rounded either way
};

const Boundary kBoundaries[] = {
    {"nvfp4", {{"quant", "nvfp4"}}, 16, 76 * 6 / kEncodeScale},
    {"nvfp4 in a swizzle",
     {{"quant", "nvfp4"}, {"scale_layout", "swizzle_128x4"}},
     16,
     0x1.1p-4 * 6 / kEncodeScale},
    {"nvfp4, nothing or the least", {{"quant", "nvfp4"}}, 16, 0x1p-10 * 6 / kEncodeScale},
    {"nvfp4, clipped or not", {{"quant", "nvfp4"}}, 16, 464 * 6 / kEncodeScale},
    {"mxfp4", {{"quant", "mxfp4"}}, 32, 1.5},
    {"mxfp4 by the exponent", {{"quant", "mxfp4"}, {"scale_rule", "floor"}}, 32, 2},
    {"mxfp4 by the rounded exponent", {{"quant", "mxfp4"}, {"scale_rule", "even"}}, 32, 1.75},
    {"mxfp8", {{"quant", "mxfp8"}, {"scale_layout", "packed_ue8m0"}}, 32, 1.75},
    {"fp8_block in bytes", {{"quant", "fp8_block"}, {"scale_type", "ue8m0"}}, 128, 3.5},
    {"fp8_block of powers", {{"quant", "fp8_block"}, {"pow2_scale", "true"}}, 128, 3.5},
};

class Settle : public test::QuantOutputTest {
 protected:
  static constexpr std::int64_t kGroups = 40;

  /// A row that rms_norm makes one whose groups have the largest magnitude `largest`, as near as
  /// weights in f32 can say.
  static std::vector<Array> row_of(double largest, std::int64_t group) {
    const std::int64_t h = kGroups * group;
    const Array x = random("x", f32, {1, h});
    const std::vector<double> values = to_doubles(x);
    double squares = 0;
    for (double value : values)
      squares += value * value;
    const double rms = std::sqrt(squares / static_cast<double>(h) + 1e-6);
    std::vector<double> weights(values.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const bool first = i % static_cast<std::size_t>(group) == 0;
      weights[i] = largest * rms / values[i] * (first ? 1 : 0.3);
    }
    return {x, make_array("w", f32, {h}, weights)};
  }

  static void add_encode_scale(const Boundary& row, std::vector<Array>& inputs) {
    if (row.options[0].second != "nvfp4") return;
    inputs.push_back(make_array("encode_scale", f32, {1}, std::array{kEncodeScale}));
    inputs.push_back(make_array("saturated", u32, {1}, std::array{5.0}));
  }

  /// What a reference says of `inputs` alone, and beside the scales that `change` makes of its own.
  struct Judged {
    HostTensors before, after;
  };
  template <class Change>
  static Judged judged(const std::vector<Array>& inputs, const Options& options, Change&& change) {
    const Operator& op = rms_norm_operator();
    Arguments arguments(op.schema);
    for (const auto& [name, value] : options)
      arguments.set_option(name, value);
    Judged judged;
    for (const Array& input : inputs) {
      arguments.set(input.name, make_view(4096, input.type, input.shape));
      judged.before.set(input);
    }
    judged.after = judged.before;
    op.reference(arguments, judged.before);
    Array scales = judged.before.at("scales");
    std::vector<double> values = to_doubles(scales);
    change(values);
    scales = make_array("scales", scales.type, scales.shape, values);
    reference_of_written(op, arguments, std::array{scales}, judged.after);
    return judged;
  }
};

TEST_F(Settle, AllowsEitherScaleBesideABoundary) {
  for (const Boundary& row : kBoundaries) {
    SCOPED_TRACE(row.what);
    std::vector<Array> inputs = row_of(row.largest, row.group);
    add_encode_scale(row, inputs);
    for (const char* from : {"f32", "via_x_dtype"}) {
      Options options = row.options;
      options.emplace_back("quant_from", from);
      run(rms_norm_operator(), inputs, options);
    }
  }
}

// Rows of bf16 are rounded before their scale is found.
TEST_F(Settle, AllowsEitherNumberOfXsTypeBesideABoundary) {
  std::vector<Array> inputs = row_of(0.76, 16);
  inputs[0] = make_array("x", bf16, inputs[0].shape, to_doubles(inputs[0]));
  inputs.push_back(make_array("encode_scale", f32, {1}, std::array{kEncodeScale}));
  run(rms_norm_operator(), inputs, {{"quant", "nvfp4"}, {"quant_from", "via_x_dtype"}});
}

TEST_F(Settle, TakesTheOtherScaleOfABoundaryAndItsCodes) {
  std::vector<Array> inputs = row_of(0.76, 16);
  add_encode_scale(kBoundaries[0], inputs);
  const Judged judged = Settle::judged(inputs, {{"quant", "nvfp4"}}, [](std::vector<double>& all) {
    for (double& scale : all)
      scale = scale == 72 ? 80 : 72;
  });
  const std::vector<double> before = to_doubles(judged.before.at("scales")),
                            after = to_doubles(judged.after.at("scales"));
  const std::vector<double> q_before = to_doubles(judged.before.at("q")),
                            q_after = to_doubles(judged.after.at("q"));
  for (std::size_t g = 0; g < before.size(); ++g) {
    EXPECT_EQ(after[g], before[g] == 72 ? 80 : 72);
    EXPECT_NEAR(q_after[16 * g + 1] * after[g], q_before[16 * g + 1] * before[g], 1e-4);
  }
  EXPECT_EQ(judged.after.at("saturated").bytes, judged.before.at("saturated").bytes);
}

TEST_F(Settle, TakesNoScaleThatErrorsDoNotExplain) {
  for (double off : {1 - 1e-4, 1 + 1e-4}) {
    std::vector<Array> inputs = row_of(0.76 * off, 16);
    add_encode_scale(kBoundaries[0], inputs);
    const Judged judged =
        Settle::judged(inputs, {{"quant", "nvfp4"}}, [](std::vector<double>& all) {
          for (double& scale : all)
            scale = scale == 72 ? 80 : 72;
        });
    for (const char* name : {"scales", "q", "saturated"})
      EXPECT_EQ(judged.after.at(name).bytes, judged.before.at(name).bytes) << name;
  }
  std::vector<Array> inputs = row_of(0.76, 16);
  add_encode_scale(kBoundaries[0], inputs);
  const Judged judged = Settle::judged(inputs, {{"quant", "nvfp4"}}, [](std::vector<double>& all) {
    for (double& scale : all)
      scale = 88;
  });
  EXPECT_EQ(judged.after.at("scales").bytes, judged.before.at("scales").bytes);
}

TEST_F(Settle, CountsExpertsRowsThatAreWritten) {
  // silu(16) is 16 to 2^-23: the largest of each group is 76 * 6 / 600 within a few roundings.
  std::vector<double> values;
  values.reserve(384);
  for (int i = 0; i < 6 * 64; ++i)
    values.push_back(i % 64 < 32 ? 16 : 0.0475 * (i % 16 == 0 ? 1 : 0.3));
  for (const char* layout : {"row", "swizzle_128x4"}) {
    run(silu_and_mul_operator(),
        {make_array("x", f32, {2, 3, 64}, values),
         make_array("encode_scale", f32, {1}, std::array{kEncodeScale}),
         make_array("tokens_per_expert", s32, {2}, std::array{2.0, 1.0})},
        {{"quant", "nvfp4"}, {"scale_layout", layout}});
  }
}

}  // namespace
}  // namespace tilewright
