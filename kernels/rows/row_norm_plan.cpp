// SPDX-License-Identifier: Apache-2.0
// The host side of norms over rows: checks, configuration, grid.
#include "kernels/rows/row_arg.h"
#include "kernels/rows/row_norm.h"
#include "kernels/rows/row_norm_space.h"
#include "tilewright/compile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace tilewright {
namespace {

constexpr std::int64_t kMaxRow = std::int64_t{1} << 20;

/// The checks, with what their messages need.
struct Checks {
  const RowNormTensors& t;  // folded
  rows::Caller caller;

  [[noreturn]] void fail(const std::string& what) const { caller.refuse(what); }

  void types() const {
    rows::check_real(t.x, "x", caller);
    auto like_x = [&](const char* which, const std::optional<View>& view) {
      if (view) rows::check_like_or_f32(*view, which, t.x.type, "x", caller);
    };
    like_x("y", t.y);
    like_x("w", t.w);
    like_x("bias", t.bias);
    like_x("residual", t.residual);
    like_x("extra", t.extra);
    if (t.residual_out && t.residual_out->type != t.residual->type) {
      fail("residual_out has type " + std::string(name(t.residual_out->type)) +
           "; it must be residual's type " + std::string(name(t.residual->type)));
    }
    if (t.rstd && t.rstd->type != f32) {
      fail("rstd has type " + std::string(name(t.rstd->type)) + "; it must be f32");
    }
  }

  void shapes() const {
    std::int64_t h = rows::row_elems(t.x);
    if (h < 1 || h > kMaxRow) {
      fail("x has rows of " + std::to_string(h) + " elements; they must have 1 to " +
           std::to_string(kMaxRow));
    }
    const std::int64_t row_count = rows::row_count(t.x);
    auto like_x = [&](const char* which, const std::optional<View>& view) {
      if (!view || (rows::row_count(*view) == row_count && rows::row_elems(*view) == h)) return;
      fail("x is " + to_string(t.x) + " and " + which + " " + to_string(*view) +
           "; the shapes must be equal");
    };
    like_x("y", t.y);
    like_x("residual", t.residual);
    like_x("extra", t.extra);
    like_x("residual_out", t.residual_out);
    if (t.w) rows::check_vector(*t.w, "w", h, caller);
    if (t.bias) rows::check_vector(*t.bias, "bias", h, caller);
    if (t.rstd && (t.rstd->rank != 1 || t.rstd->shape[0] != row_count)) {
      fail("rstd is " + to_string(*t.rstd) + "; it must have one element for each of the " +
           std::to_string(row_count) + " rows");
    }
  }

  void presence() const {
    if (!t.y && !t.quant.q) fail("y is absent; it may be where q is given");
    if (t.residual) return;
    if (t.extra) fail("extra without residual; give residual, or extra as residual");
    if (t.residual_out) fail("residual_out without residual; give residual too");
  }

  void apart(const char* a, const std::optional<View>& first, const char* b,
             const std::optional<View>& second) const {
    if (first && second) rows::check_apart(*first, a, *second, b, caller);
  }
  void same_or_apart(const char* in, const View& first, const char* out, const View& second) const {
    if (first == second || !overlap(first, second)) return;
    fail(std::string(in) + " and " + out + " overlap without being the same; give " + out +
         " memory of its own, or " + in + " itself");
  }

  void memory() const {
    for (const auto& [which, written] : {std::pair{"y", &t.y}, {"residual_out", &t.residual_out}})
      if (*written) rows::check_distinct(**written, which, caller);
    if (t.y) same_or_apart("x", t.x, "y", *t.y);
    if (t.residual_out) same_or_apart("residual", *t.residual, "residual_out", *t.residual_out);
    apart("x", t.x, "residual", t.residual);
    codes();
    apart("x", t.x, "residual_out", t.residual_out);
    apart("residual", t.residual, "y", t.y);
    apart("y", t.y, "residual_out", t.residual_out);
    const char* const outputs[] = {"y", "residual_out", "rstd"};
    const std::optional<View> written[] = {t.y, t.residual_out, t.rstd};
    for (std::size_t i = 0; i < 3; ++i) {
      apart("w", t.w, outputs[i], written[i]);
      apart("bias", t.bias, outputs[i], written[i]);
      apart("extra", t.extra, outputs[i], written[i]);
      apart("scale", t.quant.scale, outputs[i], written[i]);
      apart("encode_scale", t.quant.encode_scale, outputs[i], written[i]);
    }
    for (const std::optional<View>& other : {std::optional(t.x), t.y, t.residual, t.residual_out}) {
      if (t.rstd && other && overlap(*t.rstd, *other))
        fail("rstd overlaps another tensor; it must be apart");
    }
  }

  void codes() const {
    const std::pair<const char*, const std::optional<View>*> written[] = {
        {"q", &t.quant.q}, {"scales", &t.quant.scales}, {"saturated", &t.quant.saturated}};
    const std::optional<View> x = t.x;
    const std::pair<const char*, const std::optional<View>*> others[] = {
        {"x", &x},           {"w", &t.w},
        {"y", &t.y},         {"rstd", &t.rstd},
        {"bias", &t.bias},   {"residual", &t.residual},
        {"extra", &t.extra}, {"residual_out", &t.residual_out}};
    for (const auto& [a, first] : written) {
      for (const auto& [b, second] : others)
        apart(a, *first, b, *second);
    }
  }

  void options(const RowNormOptions& options) const {
    rows::check_norm_numbers(options.eps, options.weight_bias, caller);
    if (options.partial < 0 || options.partial > rows::row_elems(t.x)) {
      fail("partial=" + std::to_string(options.partial) + "; it must be 0 or at most the row's " +
           std::to_string(rows::row_elems(t.x)) + " elements");
    }
  }
};

RowNormTensors folded(const RowNormTensors& tensors, const rows::Caller& caller) {
  RowNormTensors flat = tensors;
  auto fold = [&](const char* which, std::optional<View>& view) {
    if (view) view = rows::folded_in_two(*view, which, caller);
  };
  flat.x = rows::folded_in_two(tensors.x, "x", caller);
  fold("y", flat.y);
  fold("residual", flat.residual);
  fold("extra", flat.extra);
  fold("residual_out", flat.residual_out);
  return flat;
}

/// By the row alone, for the order of its sum: an access splits up where addresses are not aligned
/// to it.
int vector_elems(Type summed, std::int64_t h) {
  int elems = 16 / bytes(summed);
  while (h % elems != 0)
    elems /= 2;
  return elems;
}

constexpr DynamicModes kTwoOuterModes{.extents = 1, .strides = 0b11};

/// Of x the rows are counted.
RowNormArguments<TensorArg> args_of(const RowNormTensors& t) {
  auto matrix = [](const std::optional<View>& view) {
    if (!view) return std::optional<TensorArg>();
    return std::optional(view->rank == 3 ? tensor_arg(*view, kTwoOuterModes)
                                         : rows::uncounted_rows_arg(*view));
  };
  auto vector = [](const std::optional<View>& view) {
    return view ? std::optional(tensor_arg(*view)) : std::nullopt;
  };
  return {.x = t.x.rank == 3 ? tensor_arg(t.x, kTwoOuterModes) : rows::rows_arg(t.x),
          .w = vector(t.w),
          .y = matrix(t.y),
          .rstd = matrix(t.rstd),
          .bias = vector(t.bias),
          .residual = matrix(t.residual),
          .extra = matrix(t.extra),
          .residual_out = matrix(t.residual_out)};
}

/// Whole rows that a thread holds at once.
std::int64_t operand_count(const RowNormTensors& t) {
  std::int64_t count = 1;
  for (const std::optional<View>& view : {t.w, t.bias, t.residual, t.extra})
    count += view ? 1 : 0;
  return count;
}

/// Blocks may share a row but in place, where one would read what another has written, and but
/// where a scale needs all of the row.
rows::RowSharing sharing_of(const RowNormPlan& plan) {
  const RowNormTensors& t = plan.tensors;
  const bool in_place =
      (t.y && overlap(t.x, *t.y)) || (t.residual_out && overlap(*t.residual, *t.residual_out));
  const bool of_rows = plan.quant && plan.quant->config.coding.format == QuantFormat::fp8_token;
  return in_place || of_rows ? rows::RowSharing::never : rows::RowSharing::allowed;
}

void choose_rows(RowNormPlan& plan, const DeviceProperties& device) {
  const View& x = plan.tensors.x;
  // A sum has the order of a norm of what is stored.
  const Type summed = plan.tensors.residual ? plan.tensors.residual->type : x.type;
  const std::int64_t h = rows::row_elems(x);
  const rows::RowKey key{bits(summed), h, vector_elems(summed, h), operand_count(plan.tensors)};
  if (plan.config.statistics == Statistics::mean_and_variance) {
    // Numbers of 16 bits do not differ so little from their mean that its rounding counts.
    plan.config.corrected = summed == f32 || plan.config.rounding == SumRounding::keep_f32;
    plan.config.merged = rows::choose_merged(device, key) && !plan.config.corrected;
  }
  const rows::RowOutput output = plan.quant ? rows::RowOutput::codes : rows::RowOutput::numbers;
  const rows::RowBlocks blocks =
      rows::choose_row_blocks(plan.op, output, sharing_of(plan), device, key, rows::row_count(x));
  plan.config.row = blocks.shape;
  plan.config.weights = blocks.weights;
  plan.config.resident = blocks.resident;
}

}  // namespace

std::string to_string(const RowNormConfig& c) {
  return to_string(c.row) + " p=" + std::to_string(c.partial) +
         (c.statistics == Statistics::mean_and_variance ? " centred" : "") +
         (c.has_weight_bias ? " weight_bias" : "") +
         (c.order == WeightOrder::after_rounding ? " cast_before_weight" : "") +
         (c.rounding == SumRounding::keep_f32 ? " keep_f32" : "") + (c.merged ? " merged" : "") +
         (c.corrected ? " corrected" : "") +
         (c.weights == WeightLoads::late    ? " late"
          : c.weights == WeightLoads::early ? " early"
                                            : "") +
         (c.resident > 0 ? " m=" + std::to_string(c.resident) : "");
}

RowNormPlan plan_row_norm(std::string_view op, Statistics statistics,
                          const DeviceProperties& device, const RowNormTensors& tensors,
                          const RowNormOptions& options, SourceLoc at) {
  RowNormPlan plan;
  plan.op = op;
  plan.options = options;
  rows::Caller caller{op, at};
  plan.tensors = folded(tensors, caller);
  Checks checks{plan.tensors, caller};
  checks.presence();
  checks.types();
  checks.shapes();
  checks.memory();
  checks.options(options);
  plan.args = args_of(plan.tensors);
  const std::int64_t h = rows::row_elems(plan.tensors.x);
  const std::int64_t row_count = rows::row_count(plan.tensors.x);
  plan.quant =
      plan_quant_output(plan.tensors.quant, options.quant,
                        make_view(0, plan.tensors.x.type, std::array{row_count, h}), caller);
  plan.config.statistics = statistics;
  plan.config.rounding = options.rounding;
  choose_rows(plan, device);
  plan.config.partial = options.partial > 0 ? options.partial : h;
  plan.config.merged = plan.config.merged && plan.config.partial == h;  // equal shares of threads
  plan.config.has_weight_bias = options.weight_bias != 0;
  plan.config.order = options.order;
  plan.launch.block.x = plan.config.row.threads();
  const std::int64_t padding = plan.quant ? plan.quant->padding_blocks(plan.launch.block.x) : 0;
  plan.launch.grid.x =
      rows::row_blocks(row_count, plan.config.row.rows_of_block(), caller, padding);
  plan.row_blocks = plan.launch.grid.x - padding;
  plan.launch.grid.y = plan.config.row.parts;
  return plan;
}

std::string RowNormPlan::key() const {
  std::string text = op + "/8 " + to_string(config) + " | " + to_string(args.x);
  for (const std::optional<TensorArg>* arg :
       {&args.w, &args.rstd, &args.bias, &args.residual, &args.extra, &args.residual_out}) {
    text += " | " + rows::key_text(*arg);
  }
  if (args.y) text += " | " + to_string(*args.y);
  return quant ? text + " | " + quant->key() : text;
}

/// What each row needs stands first, in as few of the 64-byte lines of constant memory as it takes:
/// each costs few rows a wait.
Parameters RowNormPlan::parameters() const {
  Parameters parameters;
  auto add = [&](const std::optional<TensorArg>& arg, const std::optional<View>& view) {
    if (arg) pack(parameters, *arg, *view);
  };
  auto add_rows = [&](const std::optional<TensorArg>& arg, const std::optional<View>& view) {
    if (arg) pack(parameters, *arg, rows::uncounted(*view));
  };
  add(args.x, tensors.x);
  parameters.add(options.eps);
  add_rows(args.residual, tensors.residual);
  add(args.w, tensors.w);
  add_rows(args.residual_out, tensors.residual_out);
  add_rows(args.y, tensors.y);
  add(args.bias, tensors.bias);
  add_rows(args.extra, tensors.extra);
  add_rows(args.rstd, tensors.rstd);
  parameters.add(options.weight_bias);
  if (quant) quant->pack_into(parameters, row_blocks);
  return parameters;
}

PreparedLaunch prepare_row_norm(const Device& device, const RowNormPlan& plan, SourceLoc at) {
  return rows::prepare(device, plan, at);
}

void launch_row_norm(const Stream& stream, const RowNormPlan& plan, SourceLoc at) {
  if (rows::row_count(plan.tensors.x) == 0) {
    write_scale_of_no_rows(stream, plan.quant);
    return;
  }
  prepare_row_norm(stream.device(), plan, at).launch(stream, at);
}

}  // namespace tilewright
