// SPDX-License-Identifier: Apache-2.0
// Activations that quantise what they compute: against float64, and bit for bit against the
// activation followed by quantize.
#include "kernels/gated_activation/gated_activation.h"
#include "kernels/quantize/quant_output_fixture.h"

#include <cmath>
#include <limits>

namespace tilewright {
namespace {

using test::kQuantFormats;
using test::kScalesOfGroups;
using test::Options;
using test::Placement;
using test::ScalesOfGroups;
using test::Work;

const Operator* const kQuantOperators[] = {&silu_and_mul_operator(), &gelu_and_mul_operator(),
                                           &gelu_tanh_and_mul_operator(),
                                           &swigluoai_and_mul_operator()};

class QuantActivation : public test::QuantOutputTest {
 protected:
  static Work gated(const Operator& op, std::int64_t t, std::int64_t d, Type type = bf16) {
    return {op, {random("x", type, {t, 2 * d}, 3)}};
  }
  static Work silu(std::int64_t t, std::int64_t d, Type type = bf16) {
    return gated(silu_and_mul_operator(), t, d, type);
  }
};

TEST_F(QuantActivation, EqualsTheActivationFollowedByQuantize) {
  for (const char* format : kQuantFormats) {
    for (Type type : {bf16, f16, f32}) {
      for (const Operator* op : kQuantOperators)
        check(gated(*op, 5, 256, type), format);
      check({relu2_operator(), {random("x", type, {5, 256}, 3)}}, format);
      Work relu = gated(relu2_operator(), 5, 256, type);
      relu.options = {{"gated", "true"}};
      check(relu, format);
    }
  }
}

TEST_F(QuantActivation, TakesEveryWidth) {
  for (std::int64_t d : {1, 7, 63, 72, 100, 1234, 2880, 9216}) {
    check(silu(3, d), "fp8_token");
    check(silu(3, d), "fp8_tensor");
  }
  for (std::int64_t d : {128, 640, 2304})
    check(silu(2, d), "fp8_block");
  for (std::int64_t d : {32, 96, 2880}) {
    check(silu(2, d), "mxfp8");
    check(silu(2, d), "mxfp4");
  }
  for (std::int64_t d : {16, 48, 2880})
    check(silu(2, d), "nvfp4");
}

TEST_F(QuantActivation, ComputesRowsTwiceThatRegistersCannotHold) {
  for (std::int64_t d : {8193, 65544, 131072})
    check(silu(2, d), "fp8_token");
  check(silu(1, 32769, f32), "fp8_token", {{"scale_type", "ue8m0"}});
  Work work = gated(swigluoai_and_mul_operator(), 2, 66002, f16);
  work.inputs.push_back(random("bias", f32, {132004}, 1, 2));
  work.inputs.push_back(random("row_weight", f32, {2}, 1, 3));
  work.options = {{"layout", "interleaved"}};
  check(work, "fp8_token", {}, Placement{.row_padding = 2, .offset_elems = 2});
}

TEST_F(QuantActivation, WritesNumbersOfLongRowsToo) {
  constexpr std::int64_t kElems = 8193;
  const Array x = random("x", bf16, {1, 2 * kElems}, 3);
  const Array alone = run(silu_and_mul_operator(), {x}).front();
  Buffer memory(device, 1 << 17);
  memory.upload(x.bytes);
  const std::uint64_t y = memory.address() + 65536, q = memory.address() + 98304;
  gated_activation(
      stream, {.x = make_view(memory.address(), bf16, std::array<std::int64_t, 2>{1, 2 * kElems}),
               .y = make_view(y, bf16, std::array<std::int64_t, 2>{1, kElems}),
               .quant = {.q = make_view(q, e4m3, std::array<std::int64_t, 2>{1, kElems}),
                         .scales = make_view(q + 16384, f32, std::array<std::int64_t, 1>{1})}});
  std::vector<std::byte> written(alone.bytes.size());
  memory.download(written, 65536);
  EXPECT_EQ(written, alone.bytes);
}

TEST_F(QuantActivation, WritesEveryLayoutWithItsPadding) {
  for (const ScalesOfGroups& each : kScalesOfGroups) {
    for (std::int64_t t : {1, 3, 130}) {
      check(silu(t, 640), each.format,
            {{"scale_layout", each.layout}, {"scale_type", each.scale_type}});
    }
  }
}

TEST_F(QuantActivation, DividesByScalesOfAllSizes) {
  for (double size : {1e-5, 1e15, 1e18}) {
    for (const char* format : {"fp8_token", "fp8_block"})
      check({silu_and_mul_operator(), {random("x", f32, {3, 512}, size)}}, format);
  }
}

TEST_F(QuantActivation, TakesLongerAccessesOfManyElements) {
  run(relu2_operator(), {random("x", bf16, {513, 2048}, 3)}, {{"quant", "fp8_block"}});
  run(silu_and_mul_operator(), silu(520, 2080).inputs,
      {{"quant", "mxfp8"}, {"scale_layout", "swizzle_128x4"}});
}

TEST_F(QuantActivation, TakesInterleavedGatesBiasesAndWeights) {
  for (const char* layout : {"halves", "swapped", "interleaved"}) {
    for (const char* format : {"fp8_token", "fp8_block", "mxfp4"}) {
      Work work = gated(swigluoai_and_mul_operator(), 6, 128);
      work.inputs.push_back(random("bias", f32, {256}, 1, 2));
      work.inputs.push_back(random("row_weight", f32, {6}, 1, 3));
      work.options = {{"layout", layout}, {"limit", "2"}};
      check(work, format);
    }
  }
}

TEST_F(QuantActivation, TakesItsOptions) {
  for (const char* clamp : {"before", "after"}) {
    Work work = silu(4, 256);
    work.options = {{"clamp_gate", clamp}, {"limit", "1.5"}, {"round_act", "true"}};
    check(work, "fp8_token", {{"scale_type", "ue8m0"}});
    check(work, "mxfp8", {{"element", "e5m2"}, {"scale_rule", "even"}});
    check(work, "fp8_block", {{"exact", "false"}, {"floor", "4"}});
  }
}

TEST_F(QuantActivation, TakesStridesAndAlignments) {
  for (const char* layout : {"halves", "swapped", "interleaved"}) {
    for (std::int64_t padding : {1, 2, 16}) {
      for (std::int64_t offset : {0, 1, 8}) {
        const Placement placement{.row_padding = padding, .offset_elems = offset};
        Work work = silu(5, 256);
        work.options = {{"layout", layout}};
        check(work, "fp8_token", {}, placement);
        check(work, "fp8_block", {}, placement);
        if (padding % 2 == 0 && offset % 2 == 0) check(work, "nvfp4", {}, placement);
      }
    }
  }
}

TEST_F(QuantActivation, IsRightInEveryConfiguration) {
  for (const char* format : {"fp8_token", "fp8_block", "mxfp4"})
    run_candidates(silu_and_mul_operator(), silu(5, 1152).inputs, {{"quant", format}});
}

TEST_F(QuantActivation, GivesARowTheSameBitsAloneAndAmongOthers) {
  for (const char* format : {"fp8_token", "fp8_block", "mxfp8"}) {
    const Work all = silu(70, 256);
    const std::vector<Array> together = last_two(run(all.op, all.inputs, {{"quant", format}}));
    Array one = make_array("x", bf16, {1, 512});
    const auto begin = all.inputs[0].bytes.begin() + 33792;  // row 33
    one.bytes.assign(begin, begin + 1024);
    const std::vector<Array> alone = last_two(run(all.op, {one}, {{"quant", format}}));
    for (std::size_t i = 0; i < 2; ++i) {
      const std::vector<std::byte>& bytes = alone[i].bytes;
      const auto at = together[i].bytes.begin() + static_cast<std::ptrdiff_t>(33 * bytes.size());
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), at)) << format;
    }
  }
}

TEST_F(QuantActivation, QuantisesHardNumbers) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> values(2048, 1.0);
  for (std::size_t i = 0; i < 256; ++i) {
    values[i] = i % 3 == 0 ? -0.0 : 0.0;            // zeros of both signs
    values[512 + i] = i % 2 == 0 ? 1e-38 : -1e-39;  // products that are subnormal or 0
  }
  values[1024 + 100] = kInfinity;
  values[1024 + 200] = -kInfinity;  // NaN by silu
  values[1536 + 7] = std::numeric_limits<double>::quiet_NaN();
  values[1536 + 256 + 130] = kInfinity;  // a factor
  for (const char* format : kQuantFormats) {
    for (Type type : {bf16, f32}) {
      check({silu_and_mul_operator(), {make_array("x", type, {4, 512}, values)}}, format);
      check({relu2_operator(), {make_array("x", type, {4, 512}, values)}}, format);
    }
  }
}

TEST_F(QuantActivation, LaunchesNothingForNoRows) {
  for (const char* format : {"fp8_token", "mxfp8"})
    run(silu_and_mul_operator(), silu(0, 64).inputs, {{"quant", format}});
}

TEST_F(QuantActivation, RefusesWhatItCannotQuantise) {
  const Operator& op = silu_and_mul_operator();
  EXPECT_EQ(refusal(op, silu(4, 96).inputs, {{"quant", "fp8_block"}}),
            "silu_and_mul: rows have 96 elements; fp8_block takes multiples of 128 without "
            "ragged_tail");
  EXPECT_EQ(refusal(op, silu(4, 96).inputs, {{"quant", "fp8_tensor"}}),
            "silu_and_mul: scale is absent; fp8_tensor takes one f32 number");
  Buffer memory(device, 4096);
  const View x = make_view(memory.address(), bf16, std::array<std::int64_t, 2>{4, 64});
  const View q = make_view(memory.address(), e4m3, std::array<std::int64_t, 2>{4, 32});
  const View scales = make_view(memory.address() + 2048, f32, std::array<std::int64_t, 1>{4});
  auto refused = [&](const GatedTensors& tensors) -> std::string {
    try {
      gated_activation(stream, tensors);
    } catch (const Error& error) {
      return error.message();
    }
    return "accepted";
  };
  EXPECT_EQ(refused({.x = x}), "silu_and_mul: y is absent; it may be where q is given");
  EXPECT_EQ(refused({.x = x, .quant = {.q = q, .scales = scales}}),
            "silu_and_mul: x and q overlap; they must be apart");
}

}  // namespace
}  // namespace tilewright
