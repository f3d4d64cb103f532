// SPDX-License-Identifier: Apache-2.0
// The host side of gather_rows and embedding: checks, access width, what is copied as bits.
#include "kernels/row_gather/gather_norm.h"
#include "kernels/row_gather/row_checks.h"
#include "kernels/row_gather/row_gather.h"
#include "kernels/rows/row_arg.h"
#include "kernels/rows/row_shape.h"
#include "kernels/rows/row_tile_space.h"
#include "tilewright/stream.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace tilewright {
namespace {

void check_tokens(const RowGatherTensors& t, const RowGatherOptions& options,
                  const rows::Caller& caller) {
  const std::int64_t rows = t.table.shape[0];
  if (options.count < -1 || options.count > rows) {
    caller.refuse("vocab_count=" + std::to_string(options.count) + "; the table has " +
                  std::to_string(rows) + " rows");
  }
  if (!options.added) return;
  const AddedTokens& added = *options.added;
  if (added.first_id < 0)
    caller.refuse("added_start=" + std::to_string(added.first_id) + "; it must be at least 0");
  if (added.first_row < std::max<std::int64_t>(0, options.count) || added.first_row > rows) {
    caller.refuse("added_row=" + std::to_string(added.first_row) + "; it must be " +
                  std::to_string(std::max<std::int64_t>(0, options.count)) + " to " +
                  std::to_string(rows) + ", behind the other tokens");
  }
  if (added.count < -1 || added.count > rows - added.first_row) {
    caller.refuse("added_count=" + std::to_string(added.count) + "; the table has " +
                  std::to_string(rows - added.first_row) + " rows from added_row on");
  }
}

void check_bad_ids(const RowGatherTensors& t, const rows::Caller& caller) {
  if (!t.bad_ids) return;
  if (t.bad_ids->type != u32 || size(*t.bad_ids) != 1)
    caller.refuse("bad_ids is " + to_string(*t.bad_ids) + "; it must be u32[1]");
  for (const auto& [view, which] :
       {std::pair{&t.table, "table"}, {&t.out, "out"}, {&t.ids, "ids"}}) {
    rows::check_apart(*view, which, *t.bad_ids, "bad_ids", caller);
  }
}

/// The names of rows to add and of their indices.
struct AddedNames {
  const char* table;
  const char* indices;
};
void check_added_rows(const RowGatherTensors& t, const std::optional<AddedRows<View>>& added,
                      AddedNames names, const rows::Caller& caller) {
  if (!added) return;
  const View& table = added->table;
  rows::check_real(table, names.table, caller);
  const bool fits = table.rank == 2 && table.shape[1] == t.out.shape[1] &&
                    (table.shape[1] == 1 || table.stride[1] == 1);
  if (!fits) {
    caller.refuse(std::string(names.table) + " is " + to_string(table) + "; it must have rows of " +
                  std::to_string(t.out.shape[1]) + " contiguous elements");
  }
  if (!rows::is_index_type(added->indices.type)) {
    caller.refuse(std::string(names.indices) + " has type " +
                  std::string(name(added->indices.type)) + "; it must be s32 or s64");
  }
  rows::check_vector(added->indices, names.indices, t.out.shape[0], caller);
  for (const auto& [view, which] :
       {std::pair{&table, names.table}, {&added->indices, names.indices}}) {
    rows::check_apart(*view, which, t.out, "out", caller);
    if (t.bad_ids) rows::check_apart(*view, which, *t.bad_ids, "bad_ids", caller);
  }
}

void check_scale(const RowGatherTensors& t, const rows::Caller& caller) {
  if (!t.row_scale) return;
  rows::check_type(*t.row_scale, "row_scale", f32, caller);
  rows::check_vector(*t.row_scale, "row_scale", t.table.shape[0], caller);
  rows::check_apart(*t.row_scale, "row_scale", t.out, "out", caller);
  if (t.bad_ids) rows::check_apart(*t.row_scale, "row_scale", *t.bad_ids, "bad_ids", caller);
}

void check_rows(const RowGatherTensors& t, const rows::Caller& caller) {
  const bool gathers = caller.op == "gather_rows";
  if (gathers) check_same_type(t.table, t.out, "a gather", caller);
  check_row_types(t.ids, t.table, caller);
  check_row_pair(t.ids, {t.table, gathers ? "src" : "table"}, {t.out, gathers ? "dst" : "out"},
                 caller);
  rows::check_vector(t.ids, "ids", t.out.shape[0], caller);
}

/// Elements of an access of every table and of the output.
int vector_of(const RowGatherTensors& t) {
  std::vector<View> views{t.table, t.out};
  for (const std::optional<AddedRows<View>>* added : {&t.types, &t.positions}) {
    if (*added) views.push_back((*added)->table);
  }
  return rows::common_vector(t.out.type, views);
}

std::optional<AddedRows<TensorArg>> arg_of(const std::optional<AddedRows<View>>& added) {
  if (!added) return std::nullopt;
  return AddedRows<TensorArg>{rows::rows_arg(added->table), rows::rows_arg(added->indices)};
}

LaunchConfig launch_of(const RowGatherConfig& config, const View& out, const rows::Caller& caller) {
  if (!config.norm) return rows::row_tile_launch(config.tile, out.shape[0], out.shape[1], caller);
  const rows::RowShape& row = config.norm->row;
  LaunchConfig launch;
  launch.block.x = row.threads();
  launch.grid.x = rows::row_blocks(out.shape[0], row.rows_of_block(), caller);
  return launch;
}

const tune::Space& space_of(std::string_view op) {
  static const tune::Space gather =
      rows::row_tile_space("gather_rows", rows::TileAccesses::several);
  static const tune::Space embedding =
      rows::row_tile_space("embedding", rows::TileAccesses::several);
  return op == gather.name ? gather : embedding;
}

}  // namespace

RowGatherPlan plan_row_gather(std::string_view op, const DeviceProperties& device,
                              const RowGatherTensors& tensors, const RowGatherOptions& options,
                              SourceLoc at) {
  rows::Caller caller{op, at};
  check_rows(tensors, caller);
  check_scale(tensors, caller);
  check_tokens(tensors, options, caller);
  check_bad_ids(tensors, caller);
  check_added_rows(tensors, tensors.types, {"type_table", "token_types"}, caller);
  check_added_rows(tensors, tensors.positions, {"position_table", "positions"}, caller);
  if (!std::isfinite(options.scale)) {
    caller.refuse("scale=" + rows::number_text(options.scale) + "; it must be finite");
  }
  check_gather_norm(tensors, options, caller);
  RowGatherPlan plan;
  plan.op = op;
  plan.options = options;
  plan.tensors = tensors;
  RowGatherTensors& t = plan.tensors;
  const bool adds = t.types || t.positions;
  bool copies =
      t.table.type == t.out.type && !t.row_scale && options.scale == 1.0f && !adds && !options.norm;
  if (copies) {
    t.table = rows::as_bits(t.table);
    t.out = rows::as_bits(t.out);
  }
  plan.config.mode = copies ? GatherMode::copy : GatherMode::convert;
  plan.config.has_first_id = options.first_id != 0;
  plan.config.has_scale = options.scale != 1.0f;
  plan.config.has_added = options.added.has_value();
  plan.config.has_count = options.count >= 0 || plan.config.has_added;
  plan.config.missing = options.missing;
  if (options.norm) {
    plan.config.norm = choose_gather_norm(device, t, options);
  } else {
    plan.config.tile = rows::choose_row_tile(space_of(op), device, t.out, vector_of(t));
  }
  plan.table_arg = rows::rows_arg(t.table);
  plan.out_arg = rows::rows_arg(t.out);
  plan.ids_arg = rows::rows_arg(t.ids);
  if (t.row_scale) plan.scale_arg = rows::rows_arg(*t.row_scale);
  if (t.bad_ids) plan.bad_ids_arg = tensor_arg(*t.bad_ids);
  plan.types_arg = arg_of(t.types);
  plan.positions_arg = arg_of(t.positions);
  if (t.w) plan.w_arg = tensor_arg(*t.w);
  if (t.residual_out) plan.residual_out_arg = rows::rows_arg(*t.residual_out);
  plan.launch = launch_of(plan.config, t.out, caller);
  return plan;
}

std::string RowGatherPlan::key() const {
  auto added = [](const char* what, const std::optional<AddedRows<TensorArg>>& arg) {
    if (!arg) return std::string();
    return std::string(" | ") + what + to_string(arg->table) + " | " + to_string(arg->indices);
  };
  return std::string(op) + "/5 " + rows::to_string(config.tile) +
         (config.mode == GatherMode::copy ? " copy" : " convert") +
         (config.has_first_id ? " first" : "") + (config.has_scale ? " scale" : "") +
         (config.has_count ? " count" : "") + (config.has_added ? " added" : "") +
         (config.missing == MissingRow::skip ? " skip" : "") + " | " + rows::key_text(bad_ids_arg) +
         " | " + to_string(ids_arg) + " | " + to_string(table_arg) + " | " +
         rows::key_text(scale_arg) + " | " + to_string(out_arg) + added("types ", types_arg) +
         added("positions ", positions_arg) +
         (config.norm ? " | norm " + to_string(*config.norm) + " | " + rows::key_text(w_arg) +
                            " | " + rows::key_text(residual_out_arg)
                      : "");
}

Parameters RowGatherPlan::parameters() const {
  Parameters parameters;
  pack(parameters, ids_arg, tensors.ids);
  pack(parameters, table_arg, tensors.table);
  pack(parameters, out_arg, tensors.out);
  if (scale_arg) pack(parameters, *scale_arg, *tensors.row_scale);
  if (bad_ids_arg) pack(parameters, *bad_ids_arg, *tensors.bad_ids);
  if (config.has_first_id) parameters.add(options.first_id);
  if (config.has_count)
    parameters.add(options.count < 0 ? options.added->first_row : options.count);
  if (options.added) {
    parameters.add(options.added->first_id);
    parameters.add(options.added->first_row);
    parameters.add(options.added->end_row(tensors.table.shape[0]));
  }
  if (config.has_scale) parameters.add(options.scale);
  auto add = [&](const std::optional<AddedRows<TensorArg>>& arg,
                 const std::optional<AddedRows<View>>& added) {
    if (!arg) return;
    pack(parameters, arg->table, added->table);
    pack(parameters, arg->indices, added->indices);
  };
  add(types_arg, tensors.types);
  add(positions_arg, tensors.positions);
  if (w_arg) pack(parameters, *w_arg, *tensors.w);
  if (residual_out_arg) pack(parameters, *residual_out_arg, *tensors.residual_out);
  if (config.norm) parameters.add(options.norm->eps);
  if (config.norm && config.norm->has_weight_bias) parameters.add(options.norm->weight_bias);
  return parameters;
}

namespace {

void run(const Stream& stream, std::string_view op, const RowGatherTensors& tensors,
         const RowGatherOptions& options, SourceLoc at) {
  RowGatherPlan plan = plan_row_gather(op, stream.device().properties(), tensors, options, at);
  if (plan.tensors.out.shape[0] == 0) return;
  rows::prepare(stream.device(), plan, at).launch(stream, at);
}

}  // namespace

void gather_rows(const Stream& stream, const View& src, const View& ids, const View& dst,
                 MissingRow missing, SourceLoc at) {
  run(stream, "gather_rows", {ids, src, std::nullopt, dst}, {.missing = missing}, at);
}

void embedding(const Stream& stream, const RowGatherTensors& tensors,
               const RowGatherOptions& options, SourceLoc at) {
  run(stream, "embedding", tensors, options, at);
}

}  // namespace tilewright
