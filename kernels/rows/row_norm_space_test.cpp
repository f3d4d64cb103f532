// SPDX-License-Identifier: Apache-2.0
// The rules for norms' blocks where no record has them.
#include "kernels/rows/row_norm_space.h"

#include "kernels/rows/rows.h"
#include "tilewright/tune.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <string_view>
#include <utility>

namespace tilewright {
namespace {

DeviceProperties large_device() {
  DeviceProperties device;
  device.name = "unknown to any record";
  device.sm_count = 132;
  return device;
}

rows::RowBlocks blocks_of(std::string_view op, std::int64_t h, std::int64_t rows,
                          rows::RowOutput output = rows::RowOutput::numbers,
                          rows::RowSharing sharing = rows::RowSharing::never) {
  return rows::choose_row_blocks(op, output, sharing, large_device(), {.h = h, .operands = 2},
                                 rows);
}
rows::RowShape shared_shape(std::string_view op, std::int64_t h, std::int64_t rows,
                            rows::RowOutput output = rows::RowOutput::numbers) {
  return blocks_of(op, h, rows, output, rows::RowSharing::allowed).shape;
}
constexpr const char* kSharing[] = {"rms_norm", "layer_norm", "fused_add_rms_norm"};

TEST(RowNormSpace, ManyRowsOfCodesLeaveFewLanesIdle) {
  struct Case {
    std::int64_t h;
    int threads;
  };
  const DeviceProperties device = large_device();
  for (const Case& c : {Case{2048, 64},
                        {4096, 128},
                        {5120, 160},
                        {6144, 192},
                        {7168, 224},
                        {8192, 256},
                        {11008, 352},
                        {14336, 448}}) {
    const rows::RowKey key{.bits = 16, .h = c.h, .access = 8, .operands = 2};
    const auto threads_of = [&](rows::RowOutput output, std::int64_t rows) {
      return rows::choose_row_blocks("rms_norm", output, rows::RowSharing::never, device, key, rows)
          .shape.threads_per_row;
    };
    EXPECT_EQ(threads_of(rows::RowOutput::codes, 32768), c.threads) << c.h;
    EXPECT_EQ(threads_of(rows::RowOutput::codes, 64), threads_of(rows::RowOutput::numbers, 64))
        << c.h;
  }
}

TEST(RowNormSpace, ManyRowsOfNarrowAccessesHaveSixteenBytesAThread) {
  const DeviceProperties device = large_device();
  const auto threads_of = [&](std::int64_t h, std::int64_t access, std::int64_t rows) {
    const rows::RowKey key{.bits = 16, .h = h, .access = access, .operands = 2};
    return rows::choose_row_blocks("rms_norm", rows::RowOutput::numbers, rows::RowSharing::allowed,
                                   device, key, rows)
        .shape.threads_per_row;
  };
  EXPECT_EQ(threads_of(4097, 1, 16384), 544);
  EXPECT_EQ(threads_of(4098, 2, 16384), 544);
  EXPECT_EQ(threads_of(4100, 4, 16384), 544);
  EXPECT_EQ(threads_of(4097, 1, 1024), 544);
  EXPECT_EQ(threads_of(4097, 1, 1), 1024);
  EXPECT_EQ(rows::max_accesses(2, 16), 32);
  EXPECT_EQ(rows::max_accesses(2, 64), 16);
  EXPECT_EQ(rows::max_accesses(2, 128), 8);
  EXPECT_EQ(rows::max_accesses(3, 32), 16);
}

TEST(RowNormSpace, FourBlocksShareALongRowOfVeryFew) {
  struct Case {
    std::int64_t h;
    int threads, parts;
  };
  for (const Case& c : {Case{4096, 512, 1}, {5120, 160, 4}, {7168, 224, 4}, {8192, 256, 4}}) {
    for (const std::string_view op : kSharing) {
      const rows::RowShape shape = shared_shape(op, c.h, 16);
      EXPECT_EQ(shape.threads_per_row, c.threads) << op << " " << c.h;
      EXPECT_EQ(shape.parts, c.parts) << op << " " << c.h;
      EXPECT_EQ(shared_shape(op, c.h, 17).parts, 1) << op << " " << c.h;
      EXPECT_EQ(blocks_of(op, c.h, 1).shape.parts, 1) << op << " " << c.h;
    }
  }
}

TEST(RowNormSpace, FourBlocksShareShorterRowsOfCodes) {
  constexpr auto kCodes = rows::RowOutput::codes;
  for (const std::string_view op : kSharing) {
    EXPECT_EQ(shared_shape(op, 2048, 16, kCodes).threads_per_row, 64) << op;
    EXPECT_EQ(shared_shape(op, 7168, 1, kCodes).threads_per_row, 224) << op;
    EXPECT_EQ(shared_shape(op, 7168, 16, kCodes).parts, 4) << op;
    for (const auto& [h, rows] : {std::pair{7168, 17}, {2040, 1}, {131072, 1}}) {
      const rows::RowShape whole = blocks_of(op, h, rows, kCodes).shape;
      EXPECT_EQ(shared_shape(op, h, rows, kCodes), whole) << op << " " << h << " " << rows;
      EXPECT_EQ(whole.parts, 1) << op << " " << h << " " << rows;
    }
  }
}

TEST(RowNormSpace, RulesGiveWhatKernelsCanBeMadeOf) {
  const DeviceProperties device = large_device();
  for (const std::string_view op : {"rms_norm", "layer_norm", "fused_add_rms_norm", "embedding"}) {
    for (std::int64_t h = 8; h <= 40000; h += h < 9000 ? 8 : 1000) {
      for (const std::int64_t access : {1, 2, 8}) {
        const tune::Watch watch;
        for (const std::int64_t rows : {1, 16, 17, 64, 200, 1000, 100000}) {
          for (const auto output : {rows::RowOutput::numbers, rows::RowOutput::codes}) {
            for (const auto sharing : {rows::RowSharing::never, rows::RowSharing::allowed}) {
              for (const std::int64_t operands : {1, 2, 3, 5}) {
                const rows::RowKey key{.h = h, .access = access, .operands = operands};
                (void)rows::choose_row_blocks(op, output, sharing, device, key, rows);
              }
            }
          }
        }
        for (const auto& [space, key] : watch.lookups()) {
          ASSERT_TRUE(space->valid(device, key, space->standard(device, key)))
              << space->name << " " << tune::key_text(*space, key) << ": "
              << tune::config_text(*space, space->standard(device, key));
        }
      }
    }
  }
}

TEST(RowNormSpace, PartsAreWholeAccessesOfABlocksOneRow) {
  const auto valid = [](std::string_view op, rows::RowOutput output, rows::RowSharing sharing,
                        std::int64_t h, const tune::Config& config) {
    const tune::Watch watch;
    (void)blocks_of(op, h, 64, output, sharing);
    const tune::Lookup& lookup = watch.lookups().front();
    return lookup.space->valid(large_device(), lookup.key, config);
  };
  struct Case {
    const char* what;
    std::int64_t h;
    tune::Config config;
    bool valid;
  };
  constexpr auto kNumbers = rows::RowOutput::numbers;
  for (const Case& c : {Case{"four accesses, four parts", 8192, {256, 1, 1, 0, 0, 4}, true},
                        {"four accesses, two parts", 8192, {256, 1, 1, 2, 4, 2}, true},
                        {"the last access is of some lanes", 8000, {256, 1, 1, 1, 0, 4}, true},
                        {"two accesses, four parts", 8192, {512, 1, 1, 0, 0, 4}, false},
                        {"three accesses, two parts", 7168, {320, 1, 1, 0, 0, 2}, false},
                        {"no part", 8192, {256, 1, 1, 0, 0, 0}, false},
                        {"a warp for a row", 1024, {32, 1, 1, 0, 0, 4}, false},
                        {"rows together", 1024, {32, 4, 1, 0, 0, 4}, false},
                        {"turns", 1024, {32, 1, 4, 0, 0, 4}, false},
                        {"a looped row", 131072, {1024, 1, 1, 0, 0, 2}, false}}) {
    for (const auto output : {rows::RowOutput::numbers, rows::RowOutput::codes}) {
      for (const std::string_view op : kSharing) {
        EXPECT_EQ(valid(op, output, rows::RowSharing::allowed, c.h, c.config), c.valid) << c.what;
        EXPECT_FALSE(valid(op, output, rows::RowSharing::never, c.h, c.config)) << c.what;
      }
    }
    EXPECT_FALSE(valid("embedding", kNumbers, rows::RowSharing::never, c.h, c.config)) << c.what;
  }
}

}  // namespace
}  // namespace tilewright
