// SPDX-License-Identifier: Apache-2.0
// The host side of rms_norm: checks, folding, configuration, grid.
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rows/rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace tilewright {
namespace {

constexpr std::int64_t kMaxRow = std::int64_t{1} << 20;

[[noreturn]] void refuse(const std::string& what, SourceLoc at) {
  throw Error(ErrorKind::user, "rms_norm: " + what, at);
}

void check_types(const RmsNormTensors& t, SourceLoc at) {
  rows::Caller caller{"rms_norm", at};
  rows::check_real(t.x, "x", caller);
  rows::check_like_or_f32(t.y, "y", t.x.type, "x", caller);
  if (t.w) rows::check_like_or_f32(*t.w, "w", t.x.type, "x", caller);
  if (t.rstd && t.rstd->type != f32) {
    refuse("rstd has type " + std::string(name(t.rstd->type)) + "; it must be f32", at);
  }
}

void check_shapes(const RmsNormTensors& t, SourceLoc at) {
  std::int64_t h = t.x.shape[1];
  if (h < 1 || h > kMaxRow) {
    refuse("x has rows of " + std::to_string(h) + " elements; they must have 1 to " +
               std::to_string(kMaxRow),
           at);
  }
  if (t.y.shape[0] != t.x.shape[0] || t.y.shape[1] != h) {
    refuse("x is " + to_string(t.x) + " and y " + to_string(t.y) + "; the shapes must be equal",
           at);
  }
  if (t.w) rows::check_vector(*t.w, "w", h, {"rms_norm", at});
  if (t.rstd && (t.rstd->rank != 1 || t.rstd->shape[0] != t.x.shape[0])) {
    refuse("rstd is " + to_string(*t.rstd) + "; it must have one element for each of the " +
               std::to_string(t.x.shape[0]) + " rows",
           at);
  }
}

void check_memory(const RmsNormTensors& t, SourceLoc at) {
  bool in_place = t.x == t.y;
  if (!in_place && overlap(t.x, t.y)) {
    refuse("x and y overlap without being the same; give y memory of its own, or x itself", at);
  }
  if (t.w) rows::check_apart(*t.w, "w", t.y, "y", {"rms_norm", at});
  if (t.rstd && (overlap(*t.rstd, t.y) || overlap(*t.rstd, t.x))) {
    refuse("rstd overlaps x or y; it must be apart", at);
  }
}

void check_options(const RmsNormOptions& options, std::int64_t h, SourceLoc at) {
  if (!std::isfinite(options.eps) || options.eps < 0) {
    refuse("eps=" + std::to_string(options.eps) + "; it must be finite and at least 0", at);
  }
  if (!std::isfinite(options.weight_bias)) {
    refuse("weight_bias=" + std::to_string(options.weight_bias) + "; it must be finite", at);
  }
  if (options.partial < 0 || options.partial > h) {
    refuse("partial=" + std::to_string(options.partial) + "; it must be 0 or at most the row's " +
               std::to_string(h) + " elements",
           at);
  }
}

/// Elements of the widest access, up to 16 bytes, that divides every offset of every operand.
int vector_elems(const RmsNormTensors& t) {
  std::int64_t elems = 16 * 8 / bits(t.x.type);
  auto fit = [&](const View& view, bool strided) {
    std::int64_t size = bits(view.type) / 8;
    // An access of another type splits into several; its first address decides.
    std::int64_t aligned = std::gcd<std::int64_t>(16, static_cast<std::int64_t>(view.address & 15));
    std::int64_t most = std::max<std::int64_t>(1, aligned / size);
    elems =
        std::min(elems, std::max(most, size > bits(t.x.type) / 8 && aligned == 16 ? elems : most));
    if (strided && view.shape[0] > 1) elems = std::gcd(elems, view.stride[0]);
  };
  fit(t.x, true);
  fit(t.y, true);
  if (t.w) fit(*t.w, false);
  return static_cast<int>(std::gcd(elems, t.x.shape[1]));
}

/// Threads and accesses for a row: by H and the access width alone. Measured on an H200 over
/// H = 2048, 4096, 7168, 8192 with 1, 64 and 32768 rows: two accesses a thread are best where they
/// come out even, else four.
void choose_row_shape(RmsNormConfig& config) {
  constexpr int kMaxVectors = 8;
  std::int64_t vectors = rows::ceil_div(config.h, config.vector_elems);
  std::int64_t power = 1;
  while (power < vectors)
    power *= 2;
  std::int64_t threads = vectors == power ? power / 2 : power / 4;
  if (vectors <= 32) threads = power;
  config.threads_per_row =
      static_cast<int>(std::clamp<std::int64_t>(threads, vectors <= 32 ? 1 : 32, 1024));
  std::int64_t each = rows::ceil_div(vectors, config.threads_per_row);
  config.looped = each > kMaxVectors;
  config.vectors = config.looped ? 1 : static_cast<int>(each);
}

void choose_grid_shape(RmsNormConfig& config, const DeviceProperties& device, std::int64_t rows) {
  constexpr int kThreadsOfManyRows = 128;
  if (config.threads_per_row <= 32 && !config.looped) {
    bool many = rows * config.threads_per_row > std::int64_t{device.sm_count} * 32;
    config.rows_per_block = many ? kThreadsOfManyRows / config.threads_per_row
                                 : std::max(1, 32 / config.threads_per_row);
  }
}

std::string text_of(const TensorArg& arg, bool present) { return present ? to_string(arg) : "-"; }

}  // namespace

std::string to_string(const RmsNormConfig& c) {
  return "h=" + std::to_string(c.h) + " p=" + std::to_string(c.partial) +
         " v=" + std::to_string(c.vector_elems) + " t=" + std::to_string(c.threads_per_row) +
         " n=" + std::to_string(c.vectors) + " r=" + std::to_string(c.rows_per_block) +
         (c.looped ? " looped" : "") + (c.has_bias ? " bias" : "") +
         (c.order == WeightOrder::after_rounding ? " round_first" : "");
}

RmsNormPlan plan_rms_norm(const RmsNormTensors& tensors, const RmsNormOptions& options,
                          const RmsNormConfig& config, SourceLoc at) {
  RmsNormPlan plan;
  plan.config = config;
  plan.options = options;
  plan.tensors = tensors;
  plan.tensors.x = rows::folded(tensors.x, "x", {"rms_norm", at});
  plan.tensors.y = rows::folded(tensors.y, "y", {"rms_norm", at});
  check_types(plan.tensors, at);
  check_shapes(plan.tensors, at);
  check_memory(plan.tensors, at);
  check_options(options, plan.tensors.x.shape[1], at);
  constexpr DynamicModes kRows{.extents = 1, .strides = 1};
  plan.x_arg = tensor_arg(plan.tensors.x, kRows);
  plan.y_arg = tensor_arg(plan.tensors.y, kRows);
  // An absent tensor takes part as x or y: the traced code does not touch it.
  plan.w_arg = plan.tensors.w ? tensor_arg(*plan.tensors.w) : plan.x_arg;
  plan.rstd_arg =
      plan.tensors.rstd ? tensor_arg(*plan.tensors.rstd, {.extents = 1, .strides = 1}) : plan.y_arg;
  std::int64_t row_count = plan.tensors.x.shape[0];
  std::int64_t blocks = rows::ceil_div(row_count, config.rows_per_block);
  if (blocks > 2'147'483'647)
    refuse("x has " + std::to_string(row_count) + " rows; at most 2147483647", at);
  plan.launch.grid.x = static_cast<int>(blocks);
  plan.launch.block.x = config.threads();
  return plan;
}

RmsNormPlan plan_rms_norm(const DeviceProperties& device, const RmsNormTensors& tensors,
                          const RmsNormOptions& options, SourceLoc at) {
  RmsNormTensors folded = tensors;
  folded.x = rows::folded(tensors.x, "x", {"rms_norm", at});
  folded.y = rows::folded(tensors.y, "y", {"rms_norm", at});
  check_types(folded, at);
  check_shapes(folded, at);
  RmsNormConfig config;
  config.h = folded.x.shape[1];
  config.partial = options.partial > 0 ? options.partial : config.h;
  config.has_bias = options.weight_bias != 0;
  config.order = options.order;
  config.vector_elems = vector_elems(folded);
  choose_row_shape(config);
  choose_grid_shape(config, device, folded.x.shape[0]);
  return plan_rms_norm(tensors, options, config, at);
}

std::string RmsNormPlan::key() const {
  return "rms_norm/1 " + to_string(config) + " | " + to_string(x_arg) + " | " +
         text_of(w_arg, tensors.w.has_value()) + " | " + to_string(y_arg) + " | " +
         text_of(rstd_arg, tensors.rstd.has_value());
}

Parameters RmsNormPlan::parameters() const {
  Parameters parameters;
  pack(parameters, x_arg, tensors.x);
  pack(parameters, w_arg, tensors.w.value_or(tensors.x));
  pack(parameters, y_arg, tensors.y);
  pack(parameters, rstd_arg, tensors.rstd.value_or(tensors.y));
  parameters.add(options.eps);
  parameters.add(options.weight_bias);
  return parameters;
}

PreparedLaunch prepare_rms_norm(const Device& device, const RmsNormPlan& plan, SourceLoc at) {
  return rows::prepare(device, plan, at);
}

void rms_norm(const Stream& stream, const RmsNormTensors& tensors, const RmsNormOptions& options,
              SourceLoc at) {
  const Device& device = stream.device();
  RmsNormPlan plan = plan_rms_norm(device.properties(), tensors, options, at);
  if (plan.tensors.x.shape[0] == 0) return;
  prepare_rms_norm(device, plan, at).launch(stream, at);
}

}  // namespace tilewright
