// SPDX-License-Identifier: Apache-2.0
// The host side of the gated activations: checks, views of gate and up, access width.
#include "kernels/gated_activation/gated_activation.h"
#include "kernels/rows/row_arg.h"
#include "kernels/rows/row_batch.h"
#include "kernels/rows/shifted_access.h"
#include "tilewright/stream.h"

#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright {
namespace {

std::int64_t extent_per_output(GateLayout layout) { return layout == GateLayout::none ? 1 : 2; }

void check_shapes(const GatedTensors& t, GateLayout layout, const rows::Caller& caller) {
  std::int64_t n = t.x.shape[1];
  if (n == 0) caller.refuse("x is " + to_string(t.x) + "; its rows must have elements");
  if (n % extent_per_output(layout) != 0) {
    caller.refuse("x is " + to_string(t.x) + "; its rows must have an even number of elements");
  }
  std::int64_t d = n / extent_per_output(layout);
  if (t.y && (t.y->shape[0] != t.x.shape[0] || t.y->shape[1] != d)) {
    caller.refuse("x is " + to_string(t.x) + " and y " + to_string(*t.y) + "; y must have " +
                  std::to_string(t.x.shape[0]) + " rows of " + std::to_string(d) + " elements");
  }
  if (t.bias) rows::check_vector(*t.bias, "bias", n, caller);
}

void check_memory(const GatedTensors& t, const rows::Caller& caller) {
  rows::check_distinct(t.x, "x", caller);
  if (t.y) rows::check_distinct(*t.y, "y", caller);
  const std::pair<const char*, std::optional<View>> inputs[] = {
      {"x", t.x},
      {"bias", t.bias},
      {"row_weight", t.row_weight},
      {"tokens_per_expert", t.tokens_per_expert},
      {"expert_alpha", t.expert_alpha},
      {"expert_limit", t.expert_limit}};
  const std::pair<const char*, std::optional<View>> outputs[] = {
      {"y", t.y}, {"q", t.quant.q}, {"scales", t.quant.scales}, {"saturated", t.quant.saturated}};
  for (const auto& [out, written] : outputs) {
    for (const auto& [in, read] : inputs)
      if (read && written) rows::check_apart(*read, in, *written, out, caller);
    if (t.y && written && out != std::string_view("y"))
      rows::check_apart(*t.y, "y", *written, out, caller);
  }
  for (const auto& [in, read] :
       {std::pair{"scale", &t.quant.scale}, {"encode_scale", &t.quant.encode_scale}}) {
    if (*read && t.y) rows::check_apart(**read, in, *t.y, "y", caller);
  }
}

void check(const GatedTensors& t, const GatedOptions& options, const rows::Caller& caller) {
  rows::check_real(t.x, "x", caller);
  if (!t.y && !t.quant.q) caller.refuse("y is absent; it may be where q is given");
  if (t.y && t.y->type != t.x.type) {
    caller.refuse("y has type " + std::string(name(t.y->type)) + "; it must be x's type " +
                  std::string(name(t.x.type)));
  }
  if (t.bias) rows::check_like_or_f32(*t.bias, "bias", t.x.type, "x", caller);
  if (t.row_weight && t.row_weight->type != f32) {
    caller.refuse("row_weight has type " + std::string(name(t.row_weight->type)) +
                  "; it must be f32");
  }
  check_shapes(t, options.layout, caller);
  if (!std::isfinite(options.limit) || options.limit <= 0) {
    caller.refuse("limit=" + rows::number_text(options.limit) + "; it must be finite and above 0");
  }
  if (!std::isfinite(options.alpha)) {
    caller.refuse("alpha=" + rows::number_text(options.alpha) + "; it must be finite");
  }
}

/// Numbers of experts, and rows of them.
void check_experts(const GatedTensors& t, const GatedOptions& options, const rows::Caller& caller) {
  const std::int64_t experts = t.x.shape[0];
  auto check_numbers = [&](const std::optional<View>& view, const char* which, Type type) {
    if (!view) return;
    rows::check_type(*view, which, type, caller);
    rows::check_vector(*view, which, experts, caller);
  };
  check_numbers(t.tokens_per_expert, "tokens_per_expert", s32);
  check_numbers(t.expert_alpha, "expert_alpha", f32);
  check_numbers(t.expert_limit, "expert_limit", f32);
  const bool oai = options.activation == Activation::swigluoai;
  if (t.expert_alpha && !oai) caller.refuse("expert_alpha is given; only swigluoai has an alpha");
  if (t.expert_limit && !oai && options.clamp_gate == ClampGate::none)
    caller.refuse("expert_limit is given with clamp_gate=none; it takes before or after");
  if (t.y && t.y->shape[0] != experts) {
    caller.refuse("y is " + to_string(*t.y) + "; it must have x's " + std::to_string(experts) +
                  " experts");
  }
}

/// Rows folded to [T, N], or held to be those of experts.
GatedTensors in_rows(const GatedTensors& tensors, const rows::Caller& caller) {
  GatedTensors t = tensors;
  if (tensors.has_experts()) {
    rows::check_batch(t.x, "x", caller);
    if (t.y) rows::check_batch(*t.y, "y", caller);
    return t;
  }
  t.x = rows::folded(tensors.x, "x", caller);
  if (t.y) t.y = rows::folded(*tensors.y, "y", caller);
  return t;
}

/// Checks all arguments but the codes.
void check_all(const GatedTensors& t, const GatedOptions& options, const rows::Caller& caller) {
  GatedTensors one = t;
  rows::Caller each = caller;
  if (t.has_experts()) {
    check_experts(t, options, caller);
    one.x = rows::first_of(t.x);
    if (t.y) one.y = rows::first_of(*t.y);
    each.scope = "of each expert";
  }
  check(one, options, each);
  const std::int64_t row_count = t.has_experts() ? t.x.shape[0] * t.x.shape[1] : t.x.shape[0];
  if (t.row_weight) rows::check_vector(*t.row_weight, "row_weight", row_count, caller);
  check_memory(t, caller);
}

/// [..., 2 d] as [..., 2, d]: the traced code takes a half by its index.
View in_halves(const View& view, std::int64_t d) {
  View halves = view;
  auto last = static_cast<std::size_t>(view.rank - 1);
  halves.rank = view.rank + 1;
  halves.shape[last] = 2;
  halves.stride[last] = d;
  halves.shape[last + 1] = d;
  halves.stride[last + 1] = 1;
  return halves;
}

/// Elements of one access to y; an access to interleaved x is twice as long.
int vector_elems(const GatedTensors& t, GateLayout layout) {
  std::vector<View> views{*t.y, t.x};
  if (t.bias) views.push_back(*t.bias);
  if (layout != GateLayout::interleaved) return rows::common_vector(t.x.type, views);
  for (std::size_t i = 1; i < views.size(); ++i) {  // pairs, as far as offsets are concerned
    View& pairs = views[i];
    for (int mode = 0; mode + 1 < pairs.rank; ++mode) {
      std::int64_t& stride = pairs.stride[static_cast<std::size_t>(mode)];
      stride = stride % 2 == 0 ? stride / 2 : 1;
    }
    pairs.shape[static_cast<std::size_t>(pairs.rank - 1)] /= 2;
  }
  return rows::common_vector(t.x.type, views);
}

/// Whether rows of many elements that alignment leaves narrow accesses are read by shifted words:
/// of x nothing lies between rows that another thread may write.
bool reads_shifted_words(const GatedPlan& plan, const View& y, int elems) {
  constexpr std::int64_t kManyElems = std::int64_t{1} << 18;
  constexpr std::int64_t kMostColumns = std::int64_t{1} << 30;  // counted in s32
  constexpr int kNarrowBytes = 4;
  const GatedTensors& t = plan.tensors;
  const bool plain = !plan.quant && !t.has_experts() && !t.bias && !t.row_weight &&
                     plan.options.layout != GateLayout::interleaved;
  const std::int64_t columns = y.shape[1];
  return plain && is_row_major(t.x) && elems * bytes(y.type) <= kNarrowBytes &&
         columns >= std::int64_t{2} * rows::kShiftedBytes && columns <= kMostColumns &&
         size(y) >= kManyElems;
}

/// Of codes: of whole groups; where addresses are not aligned an access splits up. Two loads' worth
/// where there are threads enough, for places and scales cost as much as elements: always for codes
/// of four bits, never for whole rows, which are held in registers.
int code_vector_elems(const QuantOutputPlan& quant, const View& rows) {
  constexpr std::int64_t kManyElems = std::int64_t{1} << 20;
  const bool whole_rows = quant.config.coding.format == QuantFormat::fp8_token;
  const bool many = size(rows) >= kManyElems && !whole_rows;
  int elems = (many || quant.config.coding.element == e2m1 ? 256 : 128) / bits(rows.type);
  while (quant.config.group % elems != 0 || quant.config.h % elems != 0)
    elems /= 2;
  return elems;
}

/// y, or what it would be.
View rows_of(const GatedTensors& t, GateLayout layout) {
  if (t.y) return *t.y;
  std::array<std::int64_t, kMaxViewRank> shape = t.x.shape;
  const auto rank = static_cast<std::size_t>(t.x.rank);
  shape[rank - 1] /= extent_per_output(layout);
  return make_view(0, t.x.type, std::span(shape).first(rank));
}

/// A whole row's codes, by the threads that hold it or, where it is too long, compute it twice.
void choose_row_of_codes(GatedPlan& plan, const DeviceProperties& device, const View& rows,
                         const rows::Caller& caller) {
  constexpr std::int64_t kMostElems = std::int64_t{1} << 30;
  if (plan.d > kMostElems) {
    caller.refuse("rows have " + std::to_string(plan.d) + " elements; fp8_token takes at most " +
                  std::to_string(kMostElems));
  }
  const int elems = code_vector_elems(*plan.quant, rows);
  plan.config.row = choose_row(plan.options.activation, device, rows, elems);
  plan.launch.grid.x = rows::row_blocks(plan.t, plan.config.row->rows_of_block(), caller);
  plan.tile_blocks = plan.launch.grid.x;
}

void choose_tiles(GatedPlan& plan, const DeviceProperties& device, const View& rows, int elems,
                  const rows::Caller& caller) {
  rows::RowTile& tile = plan.config.tile;
  const View matrix = make_view(0, rows.type, std::array{rows.shape[0], plan.tile_columns()});
  tile =
      choose_tile(plan.options.activation, device, matrix, elems,
                  plan.quant || plan.config.shifted ? AccessWidth::exactly : AccessWidth::at_most);
  const bool pads = plan.quant && plan.quant->config.coding.layout != ScaleLayout::row;
  if (pads) tile.grid = rows::TileGrid::numbered;
  plan.launch = rows::row_tile_launch(tile, plan.t, plan.tile_columns(), caller);
  if (!pads) return;
  plan.tile_blocks = plan.launch.grid.x;
  plan.launch.grid.x =
      rows::row_blocks(plan.tile_blocks, 1, caller, plan.quant->padding_blocks(tile.threads));
}

void add_args(GatedPlan& plan) {
  GatedTensors& t = plan.tensors;
  const bool experts = plan.config.experts;
  auto rows_arg = [&](const View& view) {
    return experts ? tensor_arg(view, rows::modes_of_batch({.extents = 1, .strides = 1}))
                   : rows::rows_arg(view);
  };
  plan.x_arg = rows_arg(t.x);
  if (t.y) plan.y_arg = rows_arg(*t.y);
  if (t.bias) plan.bias_arg = tensor_arg(*t.bias);
  if (t.row_weight && experts) {
    t.row_weight = make_view(t.row_weight->address, f32, std::array{plan.experts, plan.t});
    plan.weight_arg = tensor_arg(*t.row_weight, rows::modes_of_batch({.extents = 1}));
  } else if (t.row_weight) {
    plan.weight_arg = rows::rows_arg(*t.row_weight);
  }
  if (t.tokens_per_expert) plan.tokens_arg = rows::rows_arg(*t.tokens_per_expert);
  if (t.expert_alpha) plan.alpha_arg = rows::rows_arg(*t.expert_alpha);
  if (t.expert_limit) plan.limit_arg = rows::rows_arg(*t.expert_limit);
}

}  // namespace

GatedPlan plan_gated_activation(const DeviceProperties& device, const GatedTensors& tensors,
                                const GatedOptions& options, SourceLoc at) {
  rows::Caller caller{operator_name(options.activation), at};
  GatedPlan plan;
  plan.options = options;
  GatedTensors& t = plan.tensors;
  t = in_rows(tensors, caller);
  check_all(t, options, caller);
  const View all_rows = rows_of(t, options.layout);
  plan.experts = t.has_experts() ? all_rows.shape[0] : 1;
  plan.t = all_rows.shape[static_cast<std::size_t>(all_rows.rank - 2)];
  plan.d = rows::row_elems(all_rows);
  plan.quant = plan_quant_output(t.quant, options.quant, all_rows, caller);
  const View rows = rows::as_matrix(all_rows);
  int elems = plan.quant ? code_vector_elems(*plan.quant, rows) : vector_elems(t, options.layout);
  plan.config.shifted = reads_shifted_words(plan, rows, elems);
  if (plan.config.shifted) elems = rows::shifted_elems(rows.type);
  if (in_two_halves(options.layout)) {
    t.x = in_halves(t.x, plan.d);
    if (t.bias) t.bias = in_halves(*t.bias, plan.d);
  }
  plan.config.activation = options.activation;
  plan.config.layout = options.layout;
  plan.config.clamp_gate = options.clamp_gate;
  plan.config.round_act = options.round_act;
  plan.config.experts = t.has_experts();
  add_args(plan);
  if (plan.quant && options.quant.coding.format == QuantFormat::fp8_token) {
    choose_row_of_codes(plan, device, rows, caller);
  } else {
    choose_tiles(plan, device, rows, elems, caller);
  }
  plan.launch.block.x = plan.config.threads();
  plan.launch = rows::launch_of_batch(plan.launch, plan.experts, caller);
  return plan;
}

std::int64_t GatedPlan::tile_columns() const {
  return config.shifted ? rows::shifted_columns(d, x_arg.type) : d;
}

std::string GatedPlan::key() const {
  std::string text = std::string(operator_name(config.activation)) + "/9 " +
                     (config.row ? rows::to_string(*config.row) : rows::to_string(config.tile)) +
                     " l=" + std::to_string(static_cast<int>(config.layout)) +
                     " c=" + std::to_string(static_cast<int>(config.clamp_gate)) +
                     (config.round_act ? " round_act" : "") + (config.shifted ? " shifted" : "") +
                     " | " + to_string(x_arg);
  for (const std::optional<TensorArg>* arg : {&y_arg, &bias_arg, &weight_arg})
    text += " | " + rows::key_text(*arg);
  if (config.experts) {
    text += " experts";
    for (const std::optional<TensorArg>* arg : {&tokens_arg, &alpha_arg, &limit_arg})
      text += " | " + rows::key_text(*arg);
  }
  return quant ? text + " | " + quant->key() : text;
}

Parameters GatedPlan::parameters() const {
  Parameters parameters;
  pack(parameters, x_arg, tensors.x);
  if (bias_arg) pack(parameters, *bias_arg, *tensors.bias);
  if (weight_arg) pack(parameters, *weight_arg, *tensors.row_weight);
  if (y_arg) pack(parameters, *y_arg, *tensors.y);
  if (takes_alpha()) parameters.add(options.alpha);
  if (takes_limit()) parameters.add(options.limit);
  if (quant) quant->pack_into(parameters, tile_blocks);
  if (tokens_arg) pack(parameters, *tokens_arg, *tensors.tokens_per_expert);
  if (alpha_arg) pack(parameters, *alpha_arg, *tensors.expert_alpha);
  if (limit_arg) pack(parameters, *limit_arg, *tensors.expert_limit);
  return parameters;
}

void gated_activation(const Stream& stream, const GatedTensors& tensors,
                      const GatedOptions& options, SourceLoc at) {
  GatedPlan plan = plan_gated_activation(stream.device().properties(), tensors, options, at);
  if (plan.t == 0 || plan.experts == 0) {
    write_scale_of_no_rows(stream, plan.quant);
    return;
  }
  rows::prepare(stream.device(), plan, at).launch(stream, at);
}

}  // namespace tilewright
