// SPDX-License-Identifier: Apache-2.0
// Rows by index: gather_rows copies them; embedding also scales, converts and normalises them.
#pragma once

#include "kernels/rows/row_norm.h"
#include "kernels/rows/row_tile.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"

#include <optional>
#include <string>

namespace tilewright {

/// Rows to add: of a table, by an index of each token.
template <class T>
struct AddedRows {
  T table;    ///< [N, H] bf16, f16 or f32
  T indices;  ///< [T] s32 or s64; an index outside the table adds 0
};

struct RowGatherTensors {
  View ids;                            ///< [T] s32 or s64
  View table;                          ///< [V, H]
  std::optional<View> row_scale = {};  ///< [V] f32: a factor for each row of the table
  View out;                            ///< [T, H]
  std::optional<View> bad_ids = {};    ///< [1] u32: ids without a row are added to it
  // Added in f32 in this order, to tokens that have a row.
  std::optional<AddedRows<View>> types = {}, positions = {};
  // With RowGatherOptions::norm.
  std::optional<View> w = {};             ///< [H] bf16, f16 or f32; absent: 1
  std::optional<View> residual_out = {};  ///< [T, H] bf16, f16 or f32: what the norm reads
};

/// What an index without a row does to a row of the output.
enum class MissingRow : std::uint8_t {
  zeros,
  skip  ///< it stays as it is
};

/// Tokens whose rows stand together in the table, behind the others.
struct AddedTokens {
  std::int64_t first_id = 0;
  std::int64_t first_row = 0;
  std::int64_t count = -1;  ///< -1: to the end of the table
  std::int64_t end_row(std::int64_t rows) const { return count < 0 ? rows : first_row + count; }
};

/// rms_norm of the rows that a gather makes, in f32 or as residual_out has them. Tokens without a
/// row give +0 whatever eps and the weights are; a row of zeros in the table and eps = 0 give NaN.
struct GatherNorm {
  float eps = 1e-6f;         ///< finite, at least 0
  float weight_bias = 0.0f;  ///< added to w in f32
};

struct RowGatherOptions {
  std::int64_t first_id = 0;  ///< of the table's row 0: this rank's part of a vocabulary
  float scale = 1.0f;
  std::int64_t count = -1;  ///< tokens from first_id on; -1: to the table's end, or to the added
  std::optional<AddedTokens> added = {};  ///< behind them, and behind padding
  MissingRow missing = MissingRow::zeros;
  std::optional<GatherNorm> norm = {};
};

/// Whether elements are numbers to scale and convert, or bits to copy.
enum class GatherMode : std::uint8_t { copy, convert };

/// The specialisation besides the facts of the arguments.
struct RowGatherConfig {
  GatherMode mode = GatherMode::copy;
  bool has_first_id = false;  ///< other than 0
  bool has_scale = false;     ///< other than 1
  bool has_count = false;     ///< else the table's rows are all there are
  bool has_added = false;
  MissingRow missing = MissingRow::zeros;
  rows::RowTile tile;                      ///< without a norm
  std::optional<RowNormConfig> norm = {};  ///< what threads do instead
  friend bool operator==(const RowGatherConfig&, const RowGatherConfig&) = default;
};

struct RowGatherPlan {
  std::string_view op;
  RowGatherConfig config;
  RowGatherOptions options;
  RowGatherTensors tensors;  ///< as bits where they are copied
  TensorArg ids_arg, table_arg, out_arg;
  std::optional<TensorArg> scale_arg;
  LaunchConfig launch;
  std::optional<TensorArg> bad_ids_arg = {};
  std::optional<AddedRows<TensorArg>> types_arg = {}, positions_arg = {};
  std::optional<TensorArg> w_arg = {}, residual_out_arg = {};

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};

/// Checks the arguments of "gather_rows" or "embedding". Without a scale and with equal types the
/// bits of rows are copied.
RowGatherPlan plan_row_gather(std::string_view op, const DeviceProperties& device,
                              const RowGatherTensors& tensors, const RowGatherOptions& options = {},
                              SourceLoc at = SourceLoc::here());

/// dst[t] = src[ids[t]]; zeros, or what is there, where the index is outside src. Allocates
/// nothing, does not wait.
void gather_rows(const Stream& stream, const View& src, const View& ids, const View& dst,
                 MissingRow missing = MissingRow::zeros, SourceLoc at = SourceLoc::here());
/// out[t] = table[ids[t] - first_id] * row_scale * scale + a row of types + one of positions; zeros
/// where the table's row does not exist. With a norm that is residual_out, and out its rms_norm.
void embedding(const Stream& stream, const RowGatherTensors& tensors,
               const RowGatherOptions& options = {}, SourceLoc at = SourceLoc::here());

const Operator& gather_rows_operator();
const Operator& embedding_operator();

}  // namespace tilewright
