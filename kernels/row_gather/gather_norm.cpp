// SPDX-License-Identifier: Apache-2.0
// Checks of embedding's norm, and how many threads share a row.
#include "kernels/row_gather/gather_norm.h"

#include "kernels/rows/row_norm_space.h"

#include <string>
#include <utility>

namespace tilewright {
namespace {

constexpr std::int64_t kMaxNormRow = std::int64_t{1} << 20;

/// What is read, or written by others, is apart from `view`.
void check_apart_from_all(const RowGatherTensors& t, const View& view, const char* which,
                          const rows::Caller& caller) {
  const std::pair<const View*, const char*> always[] = {{&t.ids, "ids"}, {&t.table, "table"}};
  for (const auto& [other, name] : always)
    rows::check_apart(*other, name, view, which, caller);
  const std::pair<const std::optional<View>*, const char*> optionals[] = {
      {&t.row_scale, "row_scale"}, {&t.bad_ids, "bad_ids"}, {&t.w, "w"}};
  for (const auto& [other, name] : optionals) {
    if (*other) rows::check_apart(**other, name, view, which, caller);
  }
  const std::pair<const std::optional<AddedRows<View>>*, std::pair<const char*, const char*>>
      added[] = {{&t.types, {"type_table", "token_types"}},
                 {&t.positions, {"position_table", "positions"}}};
  for (const auto& [rows, names] : added) {
    if (!*rows) continue;
    rows::check_apart((*rows)->table, names.first, view, which, caller);
    rows::check_apart((*rows)->indices, names.second, view, which, caller);
  }
}

void check_residual_out(const RowGatherTensors& t, const rows::Caller& caller) {
  if (!t.residual_out) return;
  const View& view = *t.residual_out;
  rows::check_real(view, "residual_out", caller);
  const bool like_out =
      view.rank == 2 && view.shape[0] == t.out.shape[0] && view.shape[1] == t.out.shape[1];
  if (!like_out) {
    caller.refuse("residual_out is " + to_string(view) + " and out " + to_string(t.out) +
                  "; the shapes must be equal");
  }
  if (view.shape[1] > 1 && view.stride[1] != 1) {
    caller.refuse("residual_out is " + to_string(view) + " and has " +
                  std::to_string(view.stride[1]) + " as its last stride; it must be 1");
  }
  rows::check_distinct(view, "residual_out", caller);
  check_apart_from_all(t, view, "residual_out", caller);
  rows::check_apart(t.out, "out", view, "residual_out", caller);
}

}  // namespace

void check_gather_norm(const RowGatherTensors& t, const RowGatherOptions& options,
                       const rows::Caller& caller) {
  if (!options.norm) {
    if (t.w) caller.refuse("w is given without norm=true; nothing is normalised");
    if (t.residual_out)
      caller.refuse("residual_out is given without norm=true; out has its rows then");
    return;
  }
  const std::int64_t h = t.out.shape[1];
  if (h > kMaxNormRow) {
    caller.refuse("table has rows of " + std::to_string(h) + " elements; with norm=true they " +
                  "may have " + std::to_string(kMaxNormRow));
  }
  if (!rows::is_real_type(t.out.type)) {
    caller.refuse("out has type " + std::string(name(t.out.type)) +
                  "; with norm=true it must be bf16, f16 or f32: give out_type");
  }
  if (t.w) {
    rows::check_real(*t.w, "w", caller);
    rows::check_vector(*t.w, "w", h, caller);
    rows::check_apart(*t.w, "w", t.out, "out", caller);
    if (t.bad_ids) rows::check_apart(*t.w, "w", *t.bad_ids, "bad_ids", caller);
  }
  check_residual_out(t, caller);
  rows::check_norm_numbers(options.norm->eps, options.norm->weight_bias, caller);
}

RowNormConfig choose_gather_norm(const DeviceProperties& device, const RowGatherTensors& t,
                                 const RowGatherOptions& options) {
  const Type normed = t.residual_out ? t.residual_out->type : t.out.type;
  const std::int64_t h = t.out.shape[1];
  int access = 16 / bytes(normed);
  while (h % access != 0)
    access /= 2;
  const rows::RowKey key{bits(normed), h, access, t.w ? 2 : 1};
  const rows::RowBlocks blocks = rows::choose_row_blocks(
      "embedding", rows::RowOutput::numbers, rows::RowSharing::never, device, key, t.out.shape[0]);
  RowNormConfig config;
  config.row = blocks.shape;
  config.partial = h;
  config.has_weight_bias = options.norm->weight_bias != 0;
  config.weights = blocks.weights;
  config.resident = blocks.resident;
  return config;
}

}  // namespace tilewright
