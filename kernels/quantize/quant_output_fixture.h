// SPDX-License-Identifier: Apache-2.0
// Runs operators that quantise what they compute, and compares with the operator and quantize.
#pragma once

#include "kernels/quantize/quantize.h"
#include "operator_fixture.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace tilewright::test {

inline constexpr std::array kQuantFormats{"fp8_tensor", "fp8_token", "fp8_block",
                                          "mxfp8",      "mxfp4",     "nvfp4"};

struct ScalesOfGroups {
  const char *format, *layout, *scale_type;
};
inline constexpr ScalesOfGroups kScalesOfGroups[] = {
    {"fp8_block", "column_tma", "f32"}, {"fp8_block", "packed_ue8m0", "ue8m0"},
    {"mxfp8", "packed_ue8m0", "f32"},   {"mxfp8", "swizzle_128x4", "f32"},
    {"mxfp4", "swizzle_8x4", "f32"},    {"nvfp4", "swizzle_128x4", "f32"},
    {"nvfp4", "swizzle_8x4", "f32"},
};

/// An operator with its inputs and options.
struct Work {
  const Operator& op;
  std::vector<Array> inputs;
  Options options = {};
};

class QuantOutputTest : public OperatorTest {
 protected:
  static std::vector<Array> scales_for(const std::string& format) {
    if (format == "fp8_tensor") return {make_array("scale", f32, {1}, std::array{0.01})};
    if (format == "nvfp4") return {make_array("encode_scale", f32, {1}, std::array{600.0})};
    return {};
  }

  /// Runs the operator with codes, checks them against float64 and against what quantize makes of
  /// the operator's own output, and returns q and scales.
  std::vector<Array> check(Work work, const std::string& format, const Options& coding = {},
                           Placement placement = {}) {
    const std::vector<Array> given = scales_for(format);
    work.inputs.insert(work.inputs.end(), given.begin(), given.end());
    std::vector<Array> codes;
    for (const char* from : {"f32", "via_x_dtype"}) {
      SCOPED_TRACE(std::string(work.op.schema.name) + " " + format + " from " + from);
      Options options = work.options;
      options.insert(options.end(), coding.begin(), coding.end());
      options.insert(options.end(), {{"quant", format}, {"quant_from", from}});
      codes = last_two(run(work.op, work.inputs, options, placement));
      const bool unrounded = from == std::string("f32");
      if (unrounded && !writes_unrounded(work)) continue;
      expect_equal(codes, unfused(work, given, format, coding, placement, unrounded));
    }
    return codes;
  }

  static std::vector<Array> last_two(std::vector<Array> outputs) {
    outputs.erase(outputs.begin(), outputs.end() - 2);
    return outputs;
  }

 private:
  static bool has_out_type(const Operator& op) {
    return std::any_of(op.schema.options.begin(), op.schema.options.end(),
                       [](const OptionSpec& spec) { return spec.name == "out_type"; });
  }
  /// Whether y may have what is quantised from f32.
  static bool writes_unrounded(const Work& work) {
    return has_out_type(work.op) || work.inputs.front().type == f32;
  }

  std::vector<Array> unfused(const Work& work, const std::vector<Array>& given,
                             const std::string& format, const Options& coding, Placement placement,
                             bool unrounded) {
    std::vector<Array> inputs = work.inputs;
    inputs.resize(inputs.size() - given.size());
    Options options = work.options;
    if (unrounded && has_out_type(work.op)) options.emplace_back("out_type", "f32");
    Array y = run(work.op, inputs, options, placement).front();
    y.name = "x";
    std::vector<Array> rows{y};
    rows.insert(rows.end(), given.begin(), given.end());
    Options quantize = coding;
    quantize.emplace_back("format", format);
    return run(quantize_operator(), rows, quantize);
  }

  static void expect_equal(const std::vector<Array>& fused, const std::vector<Array>& unfused) {
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(fused[i].shape, unfused[i].shape) << unfused[i].name;
      EXPECT_EQ(fused[i].bytes, unfused[i].bytes) << unfused[i].name;
    }
  }
};

}  // namespace tilewright::test
