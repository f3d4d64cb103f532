// SPDX-License-Identifier: Apache-2.0
// Outputs of 16 bits are rounded once, to nearest: a bound lets truncation and double rounding
// through, which shrink what passes through many layers (contract, I 0.5).
#include "device_fixture.h"
#include "tilewright/operators.h"
#include "tilewright/written.h"
#include "tune/session.h"

#include <algorithm>
#include <cmath>

namespace tilewright::test {
namespace {

struct Rounded {
  const char* op;
  const char* problem;  ///< without types
  const char* types;    ///< with T for bf16 and f16
};

std::ostream& operator<<(std::ostream& out, const Rounded& each) { return out << each.op; }

const Rounded kRounded[] = {
    {"rms_norm", "T=24,H=1024", "x=T,w=T"},
    {"fused_add_rms_norm", "T=24,H=1024", "x=T,residual=T,w=T"},
    {"layer_norm", "T=24,H=1024", "x=T,w=T,bias=T"},
    {"qk_norm", "T=16,HQ=8,HK=4,D=128", "q=T,k=T,q_weight=T,k_weight=T"},
    {"qk_norm_rope", "T=16,HQ=8,HK=4,D=128,P=64,R=128",
     "q=T,k=T,q_weight=T,k_weight=T,positions=s64,cos_sin=f32"},
    {"rope", "T=16,HQ=8,HK=4,D=128,P=64,R=128", "q=T,k=T,positions=s64,cos_sin=f32"},
    {"silu_and_mul", "T=24,N=2048", "x=T"},
    {"gelu_and_mul", "T=24,N=2048", "x=T"},
    {"gelu_tanh_and_mul", "T=24,N=2048", "x=T"},
    {"swigluoai_and_mul", "T=24,N=2048", "x=T"},
    {"relu2", "T=24,N=1024", "x=T"},
    {"embedding", "T=24,V=64,H=1024,scale=45.254834", "table=T"},
    {"embedding", "T=24,V=64,H=1024,norm=true", "table=T,w=T"},
    {"pooling", "T=600,B=24,H=1024,out_type=as_hidden", "hidden=T"},
    {"dequantize", "T=24,H=1024,format=fp8_block,out_type=T", "q=e4m3,scales=f32"},
    {"moe_combine", "T=24,K=4,M=96,H=1024", "y=T"},
    {"strided_copy", "T=24,D=1024,out_type=T", "src=f32"},
};

/// How an output differs from its reference rounded to nearest.
struct Statistics {
  std::int64_t compared = 0, others = 0;
  double signed_ulps = 0;  ///< sum of distances from the nearest, away from 0 positive
};

Statistics statistics(const Array& out, const Array& reference) {
  const int bits = out.type == bf16 ? 7 : 10;  // of a significand
  const double normal = out.type == bf16 ? 0x1p-126 : 0x1p-14;
  const std::vector<double> outs = to_doubles(out), refs = to_doubles(reference);
  const std::vector<double> nearest = to_doubles(make_array("a", out.type, out.shape, refs));
  Statistics sums;
  for (std::size_t i = 0; i < outs.size(); ++i) {
    if (!std::isfinite(nearest[i]) || std::fabs(refs[i]) < normal) continue;
    ++sums.compared;
    sums.others += outs[i] == nearest[i] ? 0 : 1;
    const double ulp = std::ldexp(1.0, std::ilogb(refs[i]) - bits);
    sums.signed_ulps += (std::fabs(outs[i]) - std::fabs(nearest[i])) / ulp;
  }
  return sums;
}

std::string with_types(std::string text, Type type) {
  for (std::size_t at = text.find("=T"); at != std::string::npos; at = text.find("=T", at + 1))
    text.replace(at + 1, 1, name(type));
  return text;
}

class RoundedOutputs : public DeviceTest, public testing::WithParamInterface<Rounded> {};

TEST_P(RoundedOutputs, AreTheNearestNumbers) {
  const Rounded& each = GetParam();
  const auto all = operators();
  const auto op = std::find_if(all.begin(), all.end(),
                               [&](const Operator* one) { return one->schema.name == each.op; });
  ASSERT_NE(op, all.end());
  for (const Type type : {bf16, f16}) {
    const std::string problem = with_types(std::string(each.problem) + "," + each.types, type);
    SCOPED_TRACE(problem);
    const tune::Inputs inputs = tune::make_problem_inputs(**op, problem, 1);
    const tune::Session session(device, inputs, {});
    session.launch(stream);
    stream.synchronize();
    HostTensors tensors;
    for (const Array& array : inputs.arrays)
      tensors.set(array);
    const std::vector<Array> outputs = session.outputs();
    reference_of_written(**op, session.arguments(), outputs, tensors);
    std::int64_t checked = 0;
    for (const Array& out : outputs) {
      if (out.type != type) continue;
      const Statistics sums = statistics(out, tensors.at(out.name));
      ASSERT_GT(sums.compared, 6000) << out.name;
      const auto count = static_cast<double>(sums.compared);
      EXPECT_LT(static_cast<double>(sums.others) / count, 0.01) << out.name;
      EXPECT_LT(std::fabs(sums.signed_ulps / count), 0.02) << out.name;
      ++checked;
    }
    EXPECT_GT(checked, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, RoundedOutputs, testing::ValuesIn(kRounded));

/// The statistics find what the bound of half an ulp and a little more lets through.
TEST(RoundedStatistics, FindTruncation) {
  std::vector<double> numbers;
  for (int i = 0; i < 6000; ++i)
    numbers.push_back(1 + i / 6001.0);
  const Array reference = make_array("a", f64, {6000}, numbers);
  for (double& each : numbers)
    each = std::floor(each * 128) / 128;  // towards 0
  const Statistics sums = statistics(make_array("a", bf16, {6000}, numbers), reference);
  EXPECT_GT(static_cast<double>(sums.others) / 6000, 0.4);
  EXPECT_LT(sums.signed_ulps / 6000, -0.4);
}

}  // namespace
}  // namespace tilewright::test
