// SPDX-License-Identifier: Apache-2.0
// The rules for norms' blocks where no record has them.
#include "kernels/rows/row_norm_space.h"

#include "kernels/rows/rows.h"

#include <cstdint>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(RowNormSpace, ManyRowsOfCodesLeaveFewLanesIdle) {
  struct Case {
    std::int64_t h;
    int threads;
  };
  DeviceProperties device;
  device.name = "unknown to any record";
  device.sm_count = 132;
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
      return rows::choose_row_blocks("rms_norm", output, device, key, rows).threads;
    };
    EXPECT_EQ(threads_of(rows::RowOutput::codes, 32768), c.threads) << c.h;
    EXPECT_EQ(threads_of(rows::RowOutput::codes, 1), threads_of(rows::RowOutput::numbers, 1))
        << c.h;
  }
}

}  // namespace
}  // namespace tilewright
