// SPDX-License-Identifier: Apache-2.0
// A token's row, and its elements in f32.
#include "kernels/row_gather/gathered_row.h"

namespace tilewright {

rows::IndexedRow row_of_token(const GatherParameters& parameters, const Value& id) {
  const Int count = parameters.table.shape()[0].value();
  const Tokens& tokens = parameters.tokens;
  const Value from_first = tokens.first_id ? id.to(s64) - *tokens.first_id : id;
  if (!tokens.count) return rows::indexed_row(from_first, count);
  const Value row = from_first.to(s64);
  const Value exists = row >= 0 && row < *tokens.count;
  if (!tokens.added_id) return {row.bitcast(u64), exists};
  const Value added = id.to(s64) - *tokens.added_id + *tokens.added_row;
  const Value is_added = id.to(s64) >= *tokens.added_id && added < *tokens.added_end;
  return {select(exists, row, added).bitcast(u64), exists || is_added};
}

Fragment embedded(const GatherParameters& parameters, const Fragment& row, const Value& exists,
                  const std::optional<Value>& factor, std::span<const Fragment> added) {
  Fragment wide = row.to(f32);
  if (factor) wide = wide * *factor;
  if (parameters.scale) {
    wide = map(wide, [&](const Value& x) {
      return select(exists, x * *parameters.scale, 0.0f);  // 0 * scale may be -0
    });
  }
  for (const Fragment& each : added)
    wide = wide + each.to(f32);
  return wide;
}

}  // namespace tilewright
