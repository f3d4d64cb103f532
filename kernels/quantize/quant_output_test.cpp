// SPDX-License-Identifier: Apache-2.0
// Norms that quantise what they compute: against float64, and bit for bit against the norm followed
// by quantize.
#include "kernels/fused_add_rms_norm/fused_add_rms_norm.h"
#include "kernels/gated_activation/gated_activation.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/quantize/quant_output_fixture.h"
#include "kernels/quantize/reference.h"
#include "kernels/rms_norm/reference.h"
#include "kernels/rms_norm/rms_norm.h"

#include <array>
#include <cmath>
#include <limits>

namespace tilewright {
namespace {

using test::kQuantFormats;
using test::kScalesOfGroups;
using test::Placement;
using test::ScalesOfGroups;
using test::Work;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class QuantOutput : public test::QuantOutputTest {
 protected:
  static Work rms(std::int64_t t, std::int64_t h, Type type = bf16) {
    return {rms_norm_operator(), {random("x", type, {t, h}, 3), random("w", type, {h}, 1, 2)}};
  }
  static Work add(std::int64_t t, std::int64_t h, Type type = bf16) {
    return {fused_add_rms_norm_operator(),
            {random("x", type, {t, h}), random("residual", type, {t, h}, 2, 5),
             random("w", f32, {h}, 1, 2)}};
  }
  static Work layer(std::int64_t t, std::int64_t h, Type type = bf16) {
    return {layer_norm_operator(),
            {random("x", type, {t, h}, 3), random("w", type, {h}, 1, 2),
             random("bias", type, {h}, 1, 3)}};
  }
  static Work of_rows(Type type, std::int64_t t, const std::vector<double>& values) {
    const auto h = static_cast<std::int64_t>(values.size()) / t;
    return {rms_norm_operator(), {make_array("x", type, {t, h}, values)}};
  }
};

TEST_F(QuantOutput, EqualsTheNormFollowedByQuantize) {
  for (const char* format : kQuantFormats) {
    for (Type type : {bf16, f16, f32}) {
      check(rms(5, 384, type), format);
      check(add(5, 384, type), format);
      check(layer(5, 384, type), format);
    }
  }
}

TEST_F(QuantOutput, TakesEveryWidth) {
  for (std::int64_t h : {1, 7, 63, 72, 100, 1234, 2880}) {
    check(rms(3, h), "fp8_token");
    check(layer(3, h), "fp8_tensor");
  }
  for (std::int64_t h : {128, 256, 640, 2304, 7168})
    check(add(2, h), "fp8_block");
  for (std::int64_t h : {32, 96, 2880, 4608}) {
    check(rms(2, h), "mxfp8");
    check(layer(2, h), "mxfp4");
  }
  for (std::int64_t h : {16, 48, 2880, 5376})
    check(add(2, h), "nvfp4");
}

// Rows of several accesses a thread: lanes compute scales for each other. Groups of all kinds lie
// beside each other by their weights.
TEST_F(QuantOutput, SharesTheScalesOfFp4AmongLanes) {
  for (std::int64_t h : {3072, 4608, 5376, 7168, 10240}) {
    std::vector<double> weights(static_cast<std::size_t>(h), 1.0);
    for (std::size_t group = 0; 16 * group < weights.size(); ++group)
      weights[16 * group + group % 16] = std::array{2.0, kInfinity, -1e-30, kNan, 1e20}[group % 5];
    for (std::size_t j = 0; j < 64; ++j)
      weights[1024 + j] = 0;
    Work work = rms(3, h);
    work.inputs[1] = make_array("w", bf16, {h}, weights);
    for (const char* layout : {"row", "swizzle_128x4"}) {
      check(work, "mxfp4", {{"scale_layout", layout}});
      check(work, "nvfp4", {{"scale_layout", layout}});
      check(layer(3, h), "mxfp4", {{"scale_layout", layout}});
      check(layer(3, h), "nvfp4", {{"scale_layout", layout}, {"exact", "false"}});
    }
  }
  for (std::int64_t h : {4104, 6152, 7176}) {
    check(layer(3, h), "mxfp4", {{"scale_layout", "swizzle_128x4"}, {"ragged_tail", "true"}});
    check(layer(3, h), "nvfp4", {{"scale_layout", "row"}, {"ragged_tail", "true"}});
  }
}

TEST_F(QuantOutput, WritesEveryLayoutWithItsPadding) {
  for (const ScalesOfGroups& each : kScalesOfGroups) {
    for (std::int64_t t : {1, 3, 130}) {
      check(rms(t, 640), each.format,
            {{"scale_layout", each.layout}, {"scale_type", each.scale_type}});
    }
  }
}

TEST_F(QuantOutput, TakesTheOptionsOfQuantize) {
  for (const char* rule : {"floor", "even"}) {
    check(rms(3, 256), "mxfp8", {{"scale_rule", rule}, {"element", "e5m2"}});
    check(add(3, 256), "mxfp4", {{"scale_rule", rule}});
  }
  for (const char* format : {"fp8_token", "fp8_block"}) {
    check(layer(3, 256), format, {{"scale_type", "ue8m0"}});
    check(layer(3, 256), format, {{"exact", "false"}, {"floor", "4"}});
  }
}

TEST_F(QuantOutput, TakesTheOptionsOfTheNorm) {
  Work work = rms(4, 256);
  work.options = {{"weight_bias", "1"}, {"partial", "64"}};
  check(work, "fp8_token");
  work.options = {{"cast_before_weight", "true"}};
  check(work, "fp8_block");
  Work sum = add(4, 256);
  sum.options = {{"rounding", "keep_f32"}};
  check(sum, "mxfp8");
}

TEST_F(QuantOutput, TakesStridesAndAlignments) {
  for (std::int64_t padding : {1, 2, 4, 16}) {
    for (std::int64_t offset : {0, 1, 2, 8}) {
      const Placement placement{.row_padding = padding, .offset_elems = offset};
      check(add(5, 256), "fp8_token", {}, placement);
      check(rms(5, 256), "fp8_block", {}, placement);
      check(rms(5, 256, f32), "mxfp8", {}, placement);
      if (padding % 2 == 0 && offset % 2 == 0) check(rms(5, 256), "nvfp4", {}, placement);
    }
  }
}

TEST_F(QuantOutput, IsRightInEveryConfiguration) {
  for (const char* format : {"fp8_token", "fp8_block", "mxfp4"}) {
    run_candidates(rms_norm_operator(), rms(5, 256).inputs, {{"quant", format}});
    run_candidates(fused_add_rms_norm_operator(), add(3, 1024).inputs, {{"quant", format}});
    run_candidates(layer_norm_operator(), layer(3, 1024).inputs, {{"quant", format}});
  }
}

TEST_F(QuantOutput, QuantisesRowsThatAreReadTwice) {
  run(rms_norm_operator(), rms(2, 70016).inputs, {{"quant", "fp8_token"}});
  check(add(1, 66048), "fp8_block");
  check(layer(1, 65600), "nvfp4");
}

TEST_F(QuantOutput, WritesNumbersToo) {
  for (const Work& work : {rms(3, 256), layer(3, 256)}) {
    const Array y = run(work.op, work.inputs).front();
    Array place = make_array("y", bf16, {3, 256});
    Buffer memory(device, 1 << 16);
    memory.fill(std::byte{0});
    const std::uint64_t at = memory.address();
    std::vector<std::byte> x = work.inputs[0].bytes;
    memory.upload(x);
    memory.upload(work.inputs[1].bytes, 4096);
    Arguments arguments(work.op.schema);
    arguments.set_option("quant", "fp8_token");
    arguments.set("x", make_view(at, bf16, std::array<std::int64_t, 2>{3, 256}));
    arguments.set("w", make_view(at + 4096, bf16, std::array<std::int64_t, 1>{256}));
    if (work.inputs.size() > 2) {
      memory.upload(work.inputs[2].bytes, 8192);
      arguments.set("bias", make_view(at + 8192, bf16, std::array<std::int64_t, 1>{256}));
    }
    for (const OutputSpec& spec : work.op.outputs(arguments)) {
      if (spec.name == "y") {
        EXPECT_EQ(spec.making, Making::on_demand);
      }
    }
    arguments.set("y", make_view(at, bf16, std::array<std::int64_t, 2>{3, 256}));  // in place
    arguments.set("q", make_view(at + 16384, e4m3, std::array<std::int64_t, 2>{3, 256}));
    arguments.set("scales", make_view(at + 32768, f32, std::array<std::int64_t, 1>{3}));
    work.op.launch(device, stream, arguments);
    stream.synchronize();
    memory.download(place.bytes);
    EXPECT_EQ(place.bytes, y.bytes);
    std::vector<std::byte> q(768);
    memory.download(q, 16384);
    EXPECT_EQ(q, last_two(run(work.op, work.inputs, {{"quant", "fp8_token"}}))[0].bytes);
  }
}

TEST_F(QuantOutput, GivesARowTheSameBitsAloneAndAmongOthers) {
  for (const char* format : kQuantFormats) {
    Work all = rms(70, 512);
    const std::vector<Array> given = scales_for(format);
    all.inputs.insert(all.inputs.end(), given.begin(), given.end());
    const std::vector<Array> together = last_two(run(all.op, all.inputs, {{"quant", format}}));
    for (std::size_t row : {0U, 33U, 69U}) {
      std::vector<Array> inputs = all.inputs;
      inputs[0] = make_array("x", bf16, {1, 512});
      const auto begin = all.inputs[0].bytes.begin() + static_cast<std::ptrdiff_t>(row * 1024);
      inputs[0].bytes.assign(begin, begin + 1024);
      const std::vector<Array> alone = last_two(run(all.op, inputs, {{"quant", format}}));
      for (std::size_t i = 0; i < 2; ++i) {
        const std::vector<std::byte>& one = alone[i].bytes;
        const bool shared = std::string(format) == "fp8_tensor" && i == 1;
        const std::size_t at = shared ? 0 : row * one.size();
        EXPECT_TRUE(std::equal(one.begin(), one.end(),
                               together[i].bytes.begin() + static_cast<std::ptrdiff_t>(at)))
            << format << " row " << row;
      }
    }
  }
}

// A bias that each element's bound lets through would show in most of them.
TEST_F(QuantOutput, GivesTheCodesOfTheReferenceButForFewBesideABoundary) {
  const Work work = rms(64, 1024);
  for (const char* format : {"fp8_token", "mxfp8", "mxfp4"}) {
    const std::vector<Array> codes = last_two(run(work.op, work.inputs, {{"quant", format}}));
    HostTensors reference;
    for (const Array& input : work.inputs)
      reference.set(input);
    rms_norm_reference({}, reference);
    const Array& y = reference.at("y");
    HostTensors right;
    right.set(make_array("x", f32, y.shape, to_doubles(y)));
    const bool token = format == std::string("fp8_token");
    quantize_reference({.format = quant_format(format)}, codes[0].type, token ? f32 : ue8m0, right);
    const std::vector<double> out = to_doubles(codes[0]), wanted = to_doubles(right.at("q"));
    std::size_t other = 0;
    for (std::size_t i = 0; i < out.size(); ++i)
      other += out[i] != wanted[i] ? 1U : 0U;
    EXPECT_LT(other, out.size() / 1000) << format;
  }
}

TEST_F(QuantOutput, QuantisesHardNumbers) {
  std::vector<double> values(1024);
  for (std::size_t i = 0; i < 256; ++i) {
    values[i] = i % 3 == 0 ? -0.0 : 0.0;                             // zeros of both signs
    values[256 + i] = i % 2 == 0 ? 1e-40 : -3e-39;                   // subnormal
    values[512 + i] = i == 100 ? kInfinity : 1.0;                    // its own group is NaN
    values[768 + i] = i == 7 ? kNan : static_cast<double>(i) - 128;  // the whole row is NaN
  }
  for (const char* format : kQuantFormats) {
    for (Type type : {bf16, f32})
      check(of_rows(type, 4, values), format);
  }
}

TEST_F(QuantOutput, SpreadsNanOverItsGroupOnly) {
  Work work = rms(1, 256, f32);
  std::vector<double> weights(256, 1.0);
  weights[200] = kNan;
  work.inputs[1] = make_array("w", f32, {256}, weights);
  const std::vector<Array> out = check(work, "fp8_block");
  EXPECT_FALSE(std::isnan(to_doubles(out[1])[0]));
  EXPECT_TRUE(std::isnan(to_doubles(out[1])[1]));
  EXPECT_FALSE(std::isnan(to_doubles(out[0])[127]));
  EXPECT_TRUE(std::isnan(to_doubles(out[0])[128]));
}

TEST_F(QuantOutput, LaunchesNothingForNoRows) {
  for (const char* format : {"fp8_token", "mxfp8"})
    run(rms_norm_operator(), rms(0, 64).inputs, {{"quant", format}});
}

TEST_F(QuantOutput, HasTheScaleOfATensorOfNoRows) {
  const Array scale = make_array("scale", f32, {1}, std::vector<double>{0.25});
  for (const Operator* op : {&rms_norm_operator(), &silu_and_mul_operator()}) {
    const std::vector<Array> out =
        run(*op, {random("x", bf16, {0, 64}), scale}, {{"quant", "fp8_tensor"}});
    EXPECT_EQ(to_doubles(out.back()), std::vector<double>{0.25});
  }
}

TEST_F(QuantOutput, RefusesWhatItCannotQuantise) {
  const Operator& op = rms_norm_operator();
  const std::vector<Array> inputs = rms(4, 96).inputs;
  EXPECT_EQ(refusal(op, inputs, {{"quant", "fp8_block"}}),
            "rms_norm: rows have 96 elements; fp8_block takes multiples of 128 without "
            "ragged_tail");
  EXPECT_EQ(refusal(op, inputs, {{"quant", "fp8_tensor"}}),
            "rms_norm: scale is absent; fp8_tensor takes one f32 number");
  EXPECT_EQ(refusal(op, inputs, {{"quant", "nvfp4"}}),
            "rms_norm: encode_scale is absent; nvfp4 takes one f32 number");
  EXPECT_EQ(refusal(op, inputs, {{"quant", "mxfp8"}, {"scale_layout", "column_tma"}}),
            "rms_norm: scale_layout=column_tma with mxfp8 and scales of ue8m0; column_tma takes "
            "fp8_block with f32, packed_ue8m0 groups with ue8m0, the swizzles mxfp8, mxfp4 and "
            "nvfp4");
  std::vector<Array> scaled = inputs;
  scaled.push_back(make_array("scale", f32, {1}, std::array{1.0}));
  EXPECT_EQ(refusal(op, scaled, {{"quant", "fp8_token"}}),
            "rms_norm: scale is given; only fp8_tensor takes one");
  EXPECT_EQ(refusal(op, scaled), "rms_norm: scale is given; with quant=none nothing is quantised");
  struct Row {
    test::Options options;
    const char* message;
  };
  const Row idle[] = {
      {{{"scale_layout", "swizzle_128x4"}},
       "rms_norm: scale_layout=swizzle_128x4 with quant=none; nothing is quantised"},
      {{{"floor", "1e-9"}}, "rms_norm: floor=1e-9 with quant=none; nothing is quantised"},
      {{{"quant", "mxfp4"}, {"element", "e5m2"}},
       "rms_norm: element=e5m2 with mxfp4; it is for mxfp8"},
      {{{"quant", "mxfp8"}, {"scale_type", "ue8m0"}},
       "rms_norm: scale_type=ue8m0 with mxfp8; it is for fp8_token, fp8_block and fp8_block2d"},
      {{{"quant", "fp8_token"}, {"scale_rule", "even"}},
       "rms_norm: scale_rule=even with fp8_token; it is for mxfp8 and mxfp4"},
      {{{"quant", "mxfp8"}, {"exact", "false"}},
       "rms_norm: exact=false with mxfp8; it is for the fp8 formats and nvfp4"},
  };
  for (const Row& row : idle)
    EXPECT_EQ(refusal(op, inputs, row.options), row.message);
  run(op, inputs, {{"quant", "none"}, {"floor", "1.0e-10"}, {"exact", "1"}});  // as by default
}

TEST_F(QuantOutput, RefusesTensorsThatDoNotFit) {
  Buffer memory(device, 1 << 16);
  const std::uint64_t at = memory.address();
  auto rows = [](std::uint64_t address, Type type, std::int64_t t, std::int64_t h) {
    return make_view(address, type, std::array<std::int64_t, 2>{t, h});
  };
  auto vector = [](std::uint64_t address, std::int64_t t) {
    return make_view(address, f32, std::array<std::int64_t, 1>{t});
  };
  auto refused = [&](const RmsNormTensors& tensors) -> std::string {
    try {
      rms_norm(stream, tensors);
    } catch (const Error& error) {
      return error.message();
    }
    return "accepted";
  };
  const View x = rows(at, bf16, 4, 64);
  const View q = rows(at + 4096, e4m3, 4, 64);
  const View scales = vector(at + 8192, 4);
  EXPECT_EQ(refused({.x = x}), "rms_norm: y is absent; it may be where q is given");
  EXPECT_EQ(refused({.x = x, .quant = {.q = q}}), "rms_norm: scales is absent; q has scales");
  EXPECT_EQ(refused({.x = x, .y = x, .quant = {.scales = scales}}),
            "rms_norm: scales is given without q; only codes have scales");
  EXPECT_EQ(refused({.x = x, .quant = {.q = rows(at + 4096, e4m3, 4, 32), .scales = scales}}),
            "rms_norm: q is e4m3[4,32]; it must have 4 rows of 64 elements");
  EXPECT_EQ(refused({.x = x, .quant = {.q = rows(at, e4m3, 4, 64), .scales = scales}}),
            "rms_norm: q and x overlap; they must be apart");
  EXPECT_EQ(refused({.x = x, .quant = {.q = q, .scales = vector(at + 4096, 4)}}),
            "rms_norm: scales and q overlap; they must be apart");
  const View y = rows(at + 12288, bf16, 4, 64);
  EXPECT_EQ(
      refused(
          {.x = x, .y = y, .quant = {.q = q, .scales = scales, .scale = vector(at + 12288, 1)}}),
      "rms_norm: scale and y overlap; they must be apart");
  EXPECT_EQ(refused({.x = x, .quant = {.q = q, .scales = vector(at + 8192, 3)}}),
            "rms_norm: scales is f32[3]; it must have 4 groups of 1 element");
  EXPECT_EQ(refused({.x = x, .quant = {.q = rows(at + 4096, bf16, 4, 64), .scales = scales}}),
            "rms_norm: q has type bf16; it must be e4m3");
}

}  // namespace
}  // namespace tilewright
