// SPDX-License-Identifier: Apache-2.0
// Rows that several blocks share: the bits of one block, whatever the row, and never in place.
#include "kernels/fused_add_rms_norm/fused_add_rms_norm.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/rms_norm/rms_norm.h"
#include "operator_fixture.h"
#include "tilewright/tune.h"

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Options;
using test::Placement;

constexpr std::size_t kLate = 3, kResident = 4, kParts = 5;  // of the knobs

class RowParts : public OperatorTest {
 protected:
  /// Those with so many parts and the least or the most accesses a thread, for each time of the
  /// weights' loads.
  std::vector<tune::Config> configs_of(const tune::Lookup& lookup, int parts) const {
    std::vector<tune::Config> found;
    for (int late = 0; late <= 2; ++late) {
      std::vector<tune::Config> alike;
      for (const tune::Config& config :
           tune::candidates(*lookup.space, device.properties(), lookup.key)) {
        if (config[kParts] == parts && config[kLate] == late && config[kResident] == 0)
          alike.push_back(config);
      }
      if (alike.empty()) continue;
      found.push_back(alike.front());
      if (alike.size() > 1) found.push_back(alike.back());
    }
    return found;
  }

  static tune::Lookup parts_lookup(const tune::Watch& watch) {
    for (const tune::Lookup& lookup : watch.lookups())
      if (lookup.space->name.ends_with("parts")) return lookup;
    ADD_FAILURE() << "nothing looks up parts";
    return {};
  }

  static DeviceProperties large_device() {
    DeviceProperties large;
    large.sm_count = 132;
    return large;
  }

  /// Each configuration with parts gives the bits of one block, which are right; also the one that
  /// a large device has without a record.
  void expect_same_bits(const Operator& op, const std::vector<Array>& inputs,
                        const Options& options = {}, Placement placement = {},
                        std::initializer_list<int> counts = {1, 2, 4}) {
    const tune::Watch watch;
    const std::vector<Array> expected = run(op, inputs, options, placement);
    const tune::Lookup lookup = parts_lookup(watch);
    ASSERT_NE(lookup.space, nullptr);
    std::vector<tune::Config> configs{lookup.space->standard(large_device(), lookup.key)};
    for (int parts : counts) {
      const std::vector<tune::Config> with_parts = configs_of(lookup, parts);
      EXPECT_FALSE(with_parts.empty()) << op.schema.name << " " << parts;
      configs.insert(configs.end(), with_parts.begin(), with_parts.end());
    }
    for (const tune::Config& config : configs) {
      SCOPED_TRACE(std::string(op.schema.name) + " " + tune::config_text(*lookup.space, config));
      const tune::Pin pin(*lookup.space, config);
      const std::vector<Array> written = run(op, inputs, options, placement);
      ASSERT_EQ(written.size(), expected.size());
      for (std::size_t i = 0; i < written.size(); ++i)
        EXPECT_EQ(written[i].bytes, expected[i].bytes) << written[i].name;
    }
  }

  static std::vector<Array> inputs(Type type, std::int64_t rows, std::int64_t h) {
    return {random("x", type, {rows, h}, 2, 1), random("w", type, {h}, 1, 2)};
  }
  static std::vector<Array> with_bias(std::vector<Array> given) {
    const Array& w = given.back();
    given.push_back(random("bias", w.type, w.shape, 1, 3));
    return given;
  }

  const Operator& rms = rms_norm_operator();
  const Operator& layer = layer_norm_operator();
  const Operator& fused = fused_add_rms_norm_operator();
};

TEST_F(RowParts, GiveTheBitsOfOneBlock) {
  std::int64_t rows = 0;
  for (std::int64_t h : {5120, 7168, 8192, 8190, 8000}) {
    SCOPED_TRACE(h);
    rows = rows % 3 + 1;
    expect_same_bits(rms, inputs(bf16, rows, h));
    expect_same_bits(layer, with_bias(inputs(bf16, rows, h)));
  }
}

TEST_F(RowParts, GiveTheBitsOfOneBlockWithAnyTypesAndOptions) {
  constexpr std::int64_t kElems = 3960;
  for (Type type : {f16, f32}) {
    expect_same_bits(rms, inputs(type, 2, kElems), {{"weight_bias", "1"}});
    expect_same_bits(layer, with_bias(inputs(type, 2, kElems)), {{"out_type", "f32"}});
  }
  const std::vector<Array> given = inputs(bf16, 3, kElems);
  expect_same_bits(rms, {given[0]});
  expect_same_bits(layer, {given[0], random("bias", f32, {kElems})}, {{"weight_bias", "0.5"}});
  for (const Options& options :
       {Options{{"partial", "1000"}}, Options{{"cast_before_weight", "true"}}}) {
    expect_same_bits(rms, given, options);
    expect_same_bits(layer, with_bias(given), options);
  }
}

TEST_F(RowParts, GiveTheBitsOfOneBlockWithMergedMeans) {
  const std::vector<Array> given = with_bias(inputs(bf16, 2, 5120));
  const tune::Watch watch;
  run(layer, given);
  const tune::Lookup order = watch.lookups().front();
  ASSERT_EQ(order.space->name, "layer_norm");
  for (int merged : {0, 1}) {
    const tune::Pin pin(*order.space, {merged});
    expect_same_bits(layer, given);
  }
}

TEST_F(RowParts, TakeStridesAndAlignments) {
  for (const Placement placement : {Placement{.row_padding = 8}, {.row_padding = 1}})
    expect_same_bits(rms, inputs(bf16, 3, 5120), {}, placement);
  expect_same_bits(layer, with_bias(inputs(bf16, 2, 5120)), {}, {.offset_elems = 1});
}

TEST_F(RowParts, GiveTheBitsOfOneBlockInCodes) {
  const auto with_scale = [](const std::string& quant, std::vector<Array> given) {
    if (quant == "nvfp4")
      given.push_back(make_array("encode_scale", f32, {1}, std::vector<double>{100}));
    return given;
  };
  for (const std::string quant : {"fp8_block", "mxfp8", "mxfp4", "nvfp4"}) {
    SCOPED_TRACE(quant);
    expect_same_bits(rms, with_scale(quant, inputs(bf16, 2, 7168)), {{"quant", quant}}, {},
                     {1, 4, 7});
    expect_same_bits(layer, with_scale(quant, with_bias(inputs(bf16, 3, 4096))),
                     {{"quant", quant}});
  }
  // By the rule of a large device: the last part has accesses beyond the row, or none inside.
  for (const auto& [quant, h] : {std::pair{"mxfp8", 2880},
                                 {"mxfp4", 2880},
                                 {"nvfp4", 5376},
                                 {"fp8_block", 2304},
                                 {"mxfp8", 4608},
                                 {"nvfp4", 2064}}) {
    SCOPED_TRACE(std::string(quant) + " " + std::to_string(h));
    std::vector<Array> sum = inputs(bf16, 2, h);
    sum.push_back(random("residual", bf16, {2, h}, 1, 7));
    for (const auto& [op, given] : {std::pair{&rms, inputs(bf16, 2, h)},
                                    {&layer, with_bias(inputs(bf16, 2, h))},
                                    {&fused, sum}})
      expect_same_bits(*op, with_scale(quant, given), {{"quant", quant}}, {}, {});
  }
  // The scales of 128 rows are padded, and those of a row, too.
  for (const std::string quant : {"mxfp8", "nvfp4"}) {
    expect_same_bits(rms, with_scale(quant, inputs(f16, 5, 7200)),
                     {{"quant", quant}, {"scale_layout", "swizzle_128x4"}});
  }
  expect_same_bits(rms, inputs(bf16, 3, 7168),
                   {{"quant", "fp8_block"}, {"scale_layout", "column_tma"}});
}

/// Their scale is of the whole row.
TEST_F(RowParts, AreNotTakenByCodesOfAToken) {
  const tune::Watch watch;
  run(rms, inputs(bf16, 1, 7168), {{"quant", "fp8_token"}});
  for (const tune::Lookup& lookup : watch.lookups())
    EXPECT_EQ(lookup.space->name, "rms_norm.code_blocks");
}

/// A block would read what another has written.
TEST_F(RowParts, AreNotTakenInPlace) {
  const Array x = random("x", bf16, {3, 8192});
  const tune::Watch watch;
  const Array expected = run(rms, {x}).front();
  const tune::Lookup lookup = parts_lookup(watch);
  const tune::Pin pin(*lookup.space, {256, 1, 1, 0, 0, 4});
  Buffer memory(device, 2 * static_cast<std::int64_t>(x.bytes.size()));
  memory.upload(x.bytes);
  const View view = make_view(memory.address(), bf16, x.shape);
  View behind = view;
  behind.address += x.bytes.size();
  const RowNormPlan apart = plan_rms_norm(device.properties(), {.x = view, .y = behind});
  const RowNormPlan in_place = plan_rms_norm(device.properties(), {.x = view, .y = view});
  EXPECT_EQ(apart.launch.grid.y, 4);
  EXPECT_EQ(in_place.launch.grid.y, 1);
  EXPECT_NE(apart.key(), in_place.key());
  launch_row_norm(stream, in_place, SourceLoc::here());
  stream.synchronize();
  Array written = expected;
  memory.download(written.bytes);
  EXPECT_EQ(written.bytes, expected.bytes);
}

/// Each block writes its part of residual_out.
TEST_F(RowParts, GiveTheBitsOfOneBlockOfSums) {
  for (Type type : {bf16, f16, f32}) {
    const std::int64_t h = type == f32 ? 3960 : 7168;
    const Array residual = random("residual", type, {2, h}, 1, 7);
    const Array extra = random("extra", type, {2, h}, 1, 8);
    for (const bool third : {false, true}) {
      std::vector<Array> given{random("x", type, {2, h}, 2, 1), residual};
      if (third) given.push_back(extra);
      given.push_back(random("w", type, {h}, 1, 2));
      expect_same_bits(fused, given);
      expect_same_bits(layer, given);
      if (type == bf16) expect_same_bits(fused, given, {{"quant", "mxfp8"}});
    }
  }
}

/// A sum may be written over its residual, which other blocks still read.
TEST_F(RowParts, AreNotTakenWhereTheSumIsInPlace) {
  const std::array<std::int64_t, 2> shape{2, 7168};
  const auto at = [&](std::uint64_t address) { return make_view(address << 20, bf16, shape); };
  const auto blocks = [&](const View& residual_out) {
    const RowNormTensors tensors{
        .x = at(1), .y = at(2), .residual = at(3), .residual_out = residual_out};
    return plan_row_norm("fused_add_rms_norm", Statistics::mean_square, large_device(), tensors, {},
                         SourceLoc::here())
        .launch.grid.y;
  };
  EXPECT_EQ(blocks(at(4)), 4);
  EXPECT_EQ(blocks(at(3)), 1);
}

/// By the rule of a large device: four blocks for one row, one for each of many.
TEST_F(RowParts, GiveARowTheSameBitsAmongAnyNumberOfRows) {
  constexpr std::int64_t kMany = 1000, kElems = 2560;
  const DeviceProperties large = large_device();
  const Array x = random("x", f32, {kMany, kElems});
  Buffer memory(device, static_cast<std::int64_t>(x.bytes.size()));
  memory.upload(x.bytes);
  Buffer y(device, memory.size_bytes());
  for (const Statistics statistics : {Statistics::mean_square, Statistics::mean_and_variance}) {
    const auto bits_of = [&](std::int64_t first, std::int64_t rows, int blocks) {
      const std::int64_t from = first * kElems * 4;
      const std::array<std::int64_t, 2> shape{rows, kElems};
      const auto at = [&](const Buffer& buffer) {
        return make_view(buffer.address() + static_cast<std::uint64_t>(from), f32, shape);
      };
      const RowNormPlan plan =
          plan_row_norm(statistics == Statistics::mean_square ? "rms_norm" : "layer_norm",
                        statistics, large, {.x = at(memory), .y = at(y)}, {}, SourceLoc::here());
      EXPECT_EQ(plan.launch.grid.y, blocks);
      launch_row_norm(stream, plan, SourceLoc::here());
      stream.synchronize();
      std::vector<std::byte> row(kElems * 4);
      y.download(row, from);
      return row;
    };
    const auto first = bits_of(0, 1, 4), last = bits_of(kMany - 1, 1, 4);
    EXPECT_EQ(bits_of(0, kMany, 1), first);
    std::vector<std::byte> row(last.size());
    y.download(row, (kMany - 1) * kElems * 4);
    EXPECT_EQ(row, last);
  }
}

}  // namespace
}  // namespace tilewright
