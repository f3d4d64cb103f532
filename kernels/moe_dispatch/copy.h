// SPDX-License-Identifier: Apache-2.0
// Traced: reads each token's row once and writes it to the rows that its choices have.
#pragma once

#include "kernels/moe_dispatch/route.h"
#include "tilewright/bulk_copy.h"
#include "tilewright/fragment.h"
#include "tilewright/mbarrier.h"

#include <vector>

namespace tilewright {

/// How blocks copy. A unit is a token's row or an equal part of it; each block copies some. Units
/// pass through registers, or, as whole rows, through shared memory: the copy engine then reads a
/// row once and writes it from there.
struct CopyConfig {
  int k = 0;
  int block = 1;          ///< rows of an expert are padded to it
  int experts = 0;        ///< whose padding is zeroed
  bool zero_pad = false;  ///< zeroes rows that are padding; their scales always are
  int columns = 0;        ///< elements of a row
  int vector_elems = 1;   ///< of an access
  int threads = 128;
  int accesses = 1;        ///< of a thread in a unit, held in registers
  int stages = 0;          ///< rows of a block in shared memory; 0: units pass through registers
  bool streaming = false;  ///< rows leave the L2 cache first
  int ahead = 0;           ///< units that a block of the first wave fetches into the L2 cache
  int wave = 0;            ///< blocks of the first wave
  friend bool operator==(const CopyConfig&, const CopyConfig&) = default;
  int unit_columns() const { return stages > 0 ? columns : threads * accesses * vector_elems; }
  int units_per_token() const { return (columns + unit_columns() - 1) / unit_columns(); }
};
std::string to_string(const CopyConfig& config);

/// Elements are bits: unsigned integers.
struct CopyTensors {
  Tensor x, x_perm;                           ///< (T, H), (M, H)
  std::optional<Tensor> scales, scales_perm;  ///< (T, G), (M, G)
};

class TokenCopier {
 public:
  TokenCopier(const CopyConfig& config, const CopyTensors& tensors);

  /// Begins to read the block's first unit: this needs nothing of the routing.
  void begin();
  /// Copies the block's units: unit i for block i, then every so many blocks further on, and zeroes
  /// padding. `slots` (T K) and `rows` lie in global or shared memory.
  void copy_tokens_to_experts(const Tensor& slots, const ExpertRows& rows);

 private:
  void fetch_ahead() const;
  StoreOptions store_options() const;
  // Rows through shared memory: lane 0 of the block's only warp reads, lane k writes for choice k.
  int row_bytes() const;
  void load_row(const Value& unit, const Value& stage) const;
  std::vector<Value> rows_of_lane(const Tensor& slots, const Value& unit) const;
  BulkOptions bulk_options() const;
  void begin_rows() const;
  void copy_rows(const Tensor& slots) const;

  std::vector<Fragment> load_unit(const Value& unit) const;
  void store_unit(const Value& unit, const std::vector<Fragment>& row, const Tensor& slots) const;
  void copy_scales(const Value& token, const Tensor& slots) const;
  void zero_padding(const ExpertRows& rows) const;
  void zero_row(const Value& row) const;
  Value column(const Value& unit, int access) const;
  Value token(const Value& unit) const;

  CopyConfig c_;
  CopyTensors t_;
  Value thread_, first_, units_;
  std::vector<Fragment> row_;     // of the first unit
  std::optional<Tensor> stages_;  // (stages, H) in shared memory
  std::optional<Mbarriers> full_;
};

}  // namespace tilewright
