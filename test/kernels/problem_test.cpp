// SPDX-License-Identifier: Apache-2.0
// What the operators' problems and sessions refuse.
#include "tilewright/operators.h"
#include "tune/session.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

/// The error of a session with outputs `wanted`; "made" if there is none.
std::string text(std::string_view op, const std::string& problem,
                 const std::vector<std::string>& wanted = {}) {
  const auto all = operators();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Operator* each) { return each->schema.name == op; });
  try {
    const tune::Inputs inputs = tune::make_problem_inputs(**found, problem, 0);
    const tune::Session session(Device::open("emu:sm_90a"), inputs, wanted);
    return "made";
  } catch (const Error& error) {
    return error.message();
  }
}

TEST(Problems, HaveTheTypesThatTheirTextSays) {
  EXPECT_EQ(text("quantize", "T=4,H=128,x=f32,format=nvfp4,encode_scale=f32"), "made");
  EXPECT_EQ(text("quantize", "T=4,H=128,x=f32,format=nvfp4,encode_scale=bf16"),
            "quantize: 'encode_scale' is bf16 in the problem; it must be f32");
  EXPECT_EQ(text("rms_norm", "T=4,H=128,x=bf16,quant=nvfp4,encode_scale=f32,saturated=bf16"),
            "rms_norm: 'saturated' is bf16 in the problem; it must be u32");
  EXPECT_EQ(text("quantize", "T=4,H=128,x=bf16,scales=ue8m0"),
            "quantize: 'scales' is ue8m0 in the problem; it is an output, whose type options say");
}

TEST(Problems, HaveTheOutputsThatTheirInputsGive) {
  EXPECT_EQ(text("layer_norm", "T=2,H=8,x=bf16,residual=bf16", {"residual_out"}), "made");
  EXPECT_EQ(text("layer_norm", "T=2,H=8,x=bf16", {"residual_out"}),
            "layer_norm: residual_out is no output of these inputs and options");
  EXPECT_EQ(text("layer_norm", "T=2,H=8,x=bf16", {"out"}),
            "layer_norm: no output is named 'out'; it has y, residual_out, rstd, q, scales");
}

}  // namespace
}  // namespace tilewright
