// SPDX-License-Identifier: Apache-2.0
// What the plan of a norm over rows may choose.
#pragma once

#include "kernels/rows/row_norm.h"
#include "tilewright/tune.h"

#include <cstdint>
#include <string_view>

namespace tilewright::rows {

/// Of the row alone.
struct RowKey {
  std::int64_t bits = 16;  ///< of an element that is normalised
  std::int64_t h = 0;      ///< elements of a row
  std::int64_t access = 8;
  std::int64_t operands =
      1;  ///< whole rows that a thread holds at once: x, w, bias, residual, extra
};

/// What does not change a row's result.
struct RowBlocks {
  RowShape shape;
  WeightLoads weights = WeightLoads::free;
  int resident = 0;  ///< blocks that a multiprocessor must hold, which bounds registers; 0: any
};

/// What a norm writes of a row: rows of codes have records of their own.
enum class RowOutput : std::uint8_t { numbers, codes };

/// Whether several blocks may share a row: each reads all of it, and writes a part.
enum class RowSharing : std::uint8_t { never, allowed };

/// `op` is rms_norm, fused_add_rms_norm, layer_norm or embedding: each has records of its own, and
/// others for few rows that blocks may share.
RowBlocks choose_row_blocks(std::string_view op, RowOutput output, RowSharing sharing,
                            const DeviceProperties& device, const RowKey& key, std::int64_t rows);
/// Whether mean and variance of layer_norm take one reduction, which rounds differently: by the row
/// alone.
bool choose_merged(const DeviceProperties& device, const RowKey& key);

/// The most accesses of a thread that fit its registers: more of narrow ones.
int max_accesses(std::int64_t operands, std::int64_t access_bits);

}  // namespace tilewright::rows
