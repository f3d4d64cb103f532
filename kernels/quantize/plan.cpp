// SPDX-License-Identifier: Apache-2.0
// The host side of quantize and dequantize: checks, the threads of a group, access widths.
#include "kernels/quantize/block2d.h"
#include "kernels/quantize/codes_of_batch.h"
#include "kernels/quantize/quant_output.h"
#include "kernels/quantize/quantize.h"
#include "kernels/quantize/tensor_scale.h"
#include "kernels/rows/row_arg.h"
#include "kernels/rows/row_batch.h"
#include "kernels/rows/row_shape.h"
#include "tilewright/buffer.h"
#include "tilewright/stream.h"

#include <algorithm>
#include <array>

namespace tilewright {
namespace {

constexpr std::int64_t kPieceElems = 2048;  // of a tensor under one scale

/// Of a matrix.
void check_shapes(const View& wide, const View& q, const char* which, const QuantCoding& coding,
                  Tail tail, const rows::Caller& caller) {
  rows::check_real(wide, which, caller);
  check_coding(coding, caller);
  if (wide.shape[0] != q.shape[0] || wide.shape[1] != q.shape[1]) {
    caller.refuse(std::string(which) + " is " + to_string(wide) + " and q " + to_string(q) +
                  "; the shapes must be equal");
  }
  check_groups(coding, tail, q, caller);
}

/// Folds rows and codes, or holds them to be those of `tokens`' experts.
void take_rows(View& wide, View& q, const char* which, const std::optional<View>& tokens,
               const rows::Caller& caller) {
  if (!tokens) {
    wide = rows::folded(wide, which, caller);
    q = rows::folded(q, "q", caller);
    return;
  }
  rows::check_batch(wide, which, caller);
  check_codes_of_batch(q, wide, caller);
  check_tokens(*tokens, wide.shape[0], caller);
}

void check_rows(const View& wide, const View& q, const char* which, const QuantCoding& coding,
                Tail tail, const rows::Caller& caller) {
  if (wide.rank == 3) {
    check_shapes(rows::first_of(wide), rows::first_of(q), which, coding, tail,
                 {caller.op, caller.at, "of each expert"});
  } else {
    check_shapes(wide, q, which, coding, tail, caller);
  }
  rows::check_distinct(wide, which, caller);
  rows::check_distinct(q, "q", caller);
  rows::check_apart(wide, which, q, "q", caller);
}

/// Rows beyond registers: those under one scale of their own are read twice, and those under the
/// tensor's are cut.
void choose_long_rows(QuantizeConfig& config, const DeviceProperties& device, const View& x,
                      const rows::Caller& caller) {
  constexpr std::int64_t kMostOfToken = std::int64_t{1} << 30;
  constexpr int kAccessesAtOnce = 4;
  if (config.coding.format == QuantFormat::fp8_tensor) {
    config.group = kPieceElems;
    choose_threads(config, device, x);
    return;
  }
  if (config.h > kMostOfToken) {
    caller.refuse("rows have " + std::to_string(config.h) + " elements; fp8_token takes at most " +
                  std::to_string(kMostOfToken));
  }
  config.looped = true;
  config.accesses = kAccessesAtOnce;
}

QuantizeConfig configure(const DeviceProperties& device, const QuantizeTensors& t,
                         const QuantCoding& coding, const QuantizeOptions& options,
                         const rows::Caller& caller) {
  const View all = rows::as_matrix(t.x);
  QuantizeConfig config;
  config.coding = coding;
  config.division = division_of(coding, options.exact, options.floor);
  config.h = rows::row_elems(t.x);
  config.group = std::min(config.h, group_elems(coding.format, config.h, coding.block));
  if (coding.format == QuantFormat::fp8_block2d) {
    config.vector_elems = rows::common_vector(t.x.type, std::array{t.x, t.q});
    choose_block2d_threads(config, device, all);
    config.groups_per_block = 1;
    config.accesses = kBlock2d * kBlock2d / config.threads() / config.vector_elems;
    return config;
  }
  // Of whole rows; where addresses and strides are not aligned to it, an access splits up. A thread
  // takes two loads' worth for codes of four bits: their arithmetic is what limits those kernels.
  config.vector_elems = (coding.element == e2m1 ? 256 : 128) / bits(t.x.type);
  while (config.group % config.vector_elems != 0 || config.h % config.vector_elems != 0)
    config.vector_elems /= 2;
  choose_threads(config, device, all);
  if (config.accesses > kMaxQuantizeAccesses) choose_long_rows(config, device, all, caller);
  const std::int64_t rows_each = t.x.shape[static_cast<std::size_t>(t.x.rank - 2)];
  config.wide_index = rows_each * config.groups_of_row() > (std::int64_t{1} << 30);
  return config;
}

void check_scales(const QuantizeTensors& t, const QuantizeOptions& options,
                  const rows::Caller& caller) {
  if (t.scale) check_given(t.scale, "scale", QuantFormat::fp8_tensor, options.format, caller);
  check_given(t.encode_scale, "encode_scale", QuantFormat::nvfp4, options.format, caller);
  check_fp8(coding_of(options, t.q.type, t.scales.type), options.floor, caller);
  check_saturated(t.saturated, options.format, caller);
  if (t.saturated) rows::check_apart(t.x, "x", *t.saturated, "saturated", caller);
  if (!t.tokens_per_expert) return;
  rows::check_apart(*t.tokens_per_expert, "tokens_per_expert", t.q, "q", caller);
  rows::check_apart(*t.tokens_per_expert, "tokens_per_expert", t.scales, "scales", caller);
}

/// Blocks of threads that write a word of padding each.
std::int64_t padding_blocks(const QuantizeConfig& config, std::int64_t row_count) {
  return rows::ceil_div(padding_words(config.coding.layout, row_count, config.groups_of_row()),
                        config.threads());
}

/// Groups one after the other, whatever the rows.
bool in_one_piece(const QuantCoding& coding, std::int64_t h,
                  std::initializer_list<const View*> views) {
  if (h % group_elems(coding.format, h, coding.block) != 0) return false;
  const bool groups = coding.format == QuantFormat::fp8_block || is_mx(coding.format) ||
                      coding.format == QuantFormat::nvfp4;
  return groups && coding.layout == ScaleLayout::row &&
         std::all_of(views.begin(), views.end(), [](const View* v) { return is_row_major(*v); });
}

/// Elements of the rows that a tensor under one scale is cut into; 0: it stays as it is.
std::int64_t piece_of(const QuantCoding& coding, const View& x, const View& q) {
  if (coding.format != QuantFormat::fp8_tensor || !is_row_major(x) || !is_row_major(q)) return 0;
  std::int64_t elems = kPieceElems;
  while (size(x) % elems != 0)
    elems /= 2;
  return elems < 256 ? 0 : elems;
}

TensorArg arg_of_rows(const View& view) {
  if (view.rank == 2) return rows::rows_arg(view);
  return tensor_arg(view, rows::modes_of_batch({.extents = 1, .strides = 1}));
}

/// The elements of a row-major view as rows of `elems`.
View in_rows_of(const View& view, std::int64_t elems) {
  return make_view(view.address, view.type, std::array{size(view) / elems, elems});
}

}  // namespace

QuantCoding coding_of(const QuantizeOptions& options, Type element, Type scale_type) {
  return {.format = options.format,
          .element = element,
          .scale_type = scale_type,
          .rule = options.rule,
          .layout = options.layout,
          .block = options.group,
          .power_scale = options.pow2_scale,
          .most = options.scale_ub};
}

QuantizePlan plan_quantize(const DeviceProperties& device, const QuantizeTensors& tensors,
                           const QuantizeOptions& options, SourceLoc at) {
  rows::Caller caller{"quantize", at};
  QuantizePlan plan;
  plan.options = options;
  QuantizeTensors& t = plan.tensors;
  t = tensors;
  take_rows(t.x, t.q, "x", t.tokens_per_expert, caller);
  const bool experts = t.tokens_per_expert.has_value();
  const QuantCoding coding = coding_of(options, t.q.type, t.scales.type);
  check_rows(t.x, t.q, "x", coding, options.tail, caller);
  check_scales(t, options, caller);
  t.scales = experts ? scales_of_batch(t.scales, coding, t.q, caller)
                     : scales_view(t.scales, coding, t.q, caller);
  check_code_memory({t.q, t.scales, t.scale, t.encode_scale, t.saturated}, caller);
  rows::check_apart(t.scales, "scales", t.x, "x", caller);
  plan.scale_is_found = options.format == QuantFormat::fp8_tensor && !t.scale;
  if (plan.scale_is_found) t.scale = tensors.scales;
  const std::int64_t h = rows::row_elems(t.x);
  const bool groups_alone = !experts && in_one_piece(coding, h, {&t.x, &t.q, &t.scales});
  const std::int64_t piece = groups_alone ? group_elems(coding.format, h, coding.block)
                             : experts    ? 0
                                          : piece_of(coding, t.x, t.q);
  const bool flat = piece != 0;
  if (flat) {
    t.x = in_rows_of(t.x, piece);
    t.q = in_rows_of(t.q, piece);
  }
  if (groups_alone) t.scales = in_rows_of(t.scales, 1);
  plan.config = configure(device, t, coding, options, caller);
  plan.x_arg = arg_of_rows(t.x);
  plan.q_arg = arg_of_rows(t.q);
  if (experts) plan.tokens_arg = rows::rows_arg(*t.tokens_per_expert);
  if (plan.given()) plan.given_arg = tensor_arg(*plan.given());
  if (t.saturated) plan.saturated_arg = tensor_arg(*t.saturated);
  plan.scales_arg = groups_alone ? rows::rows_arg(t.scales)
                    : experts    ? scales_arg_of_batch(t.scales, coding)
                                 : scales_arg_of(t.scales, coding.layout);
  const std::int64_t row_count = t.x.shape[static_cast<std::size_t>(t.x.rank - 2)];
  std::int64_t groups =
      rows::ceil_div(row_count, options.format == QuantFormat::fp8_block2d ? kBlock2d : 1) *
      plan.config.groups_of_row();
  plan.group_blocks = rows::ceil_div(groups, plan.config.groups_of_block());
  std::int64_t blocks = plan.group_blocks + padding_blocks(plan.config, row_count);
  if (blocks > 2'147'483'647) {
    caller.refuse(to_string(t.x) + " takes " + std::to_string(blocks) +
                  " blocks; a launch has 2147483647");
  }
  plan.launch.grid.x = static_cast<int>(blocks);
  plan.launch.block.x = plan.config.threads();
  if (experts) plan.launch = rows::launch_of_batch(plan.launch, t.x.shape[0], caller);
  return plan;
}

std::string QuantizePlan::key() const {
  const QuantizeConfig& c = config;
  return "quantize/6 " + tilewright::to_string(c.coding) + " g=" + std::to_string(c.group) +
         " v=" + std::to_string(c.vector_elems) + " t=" + std::to_string(c.threads_per_group) +
         "x" + std::to_string(c.groups_per_block) + "x" + std::to_string(c.turns) +
         " n=" + std::to_string(c.accesses) + " m=" + std::to_string(c.resident) +
         " d=" + std::to_string(static_cast<int>(c.division)) + (c.wide_index ? " wide" : "") +
         (c.looped ? " looped" : "") + (scale_is_found ? " found" : "") + " | " + to_string(x_arg) +
         " | " + to_string(q_arg) + " | " + to_string(scales_arg) + " | " +
         rows::key_text(given_arg) +
         (saturated_arg ? " | counts " + to_string(*saturated_arg) : "") +
         (tokens_arg ? " | experts " + to_string(*tokens_arg) : "");
}

Parameters QuantizePlan::parameters() const {
  Parameters parameters;
  pack(parameters, x_arg, tensors.x);
  pack(parameters, q_arg, tensors.q);
  pack(parameters, scales_arg, tensors.scales);
  if (given_arg) pack(parameters, *given_arg, *given());
  parameters.add(options.floor);
  if (config.pads_apart()) parameters.add(static_cast<std::int32_t>(group_blocks));
  if (saturated_arg) pack(parameters, *saturated_arg, *tensors.saturated);
  if (tokens_arg) pack(parameters, *tokens_arg, *tensors.tokens_per_expert);
  return parameters;
}

std::int64_t quantize_workspace_bytes(QuantFormat format, bool has_scale) {
  return format == QuantFormat::fp8_tensor && !has_scale ? kTensorScaleBytes : 0;
}

void quantize(const Stream& stream, const QuantizeTensors& tensors, const QuantizeOptions& options,
              const Workspace& workspace, SourceLoc at) {
  const Device& device = stream.device();
  QuantizePlan plan = plan_quantize(device.properties(), tensors, options, at);
  const bool no_rows = size(plan.tensors.x) == 0;
  if (plan.scale_is_found) {
    const TensorScalePlan first =
        plan_tensor_scale(device.properties(), plan.tensors.x, tensors.scales, options.floor,
                          workspace, rows::Caller{"quantize", at}, tensors.tokens_per_expert);
    rows::prepare(device, first, at).launch(stream, at);
  } else if (no_rows && options.format == QuantFormat::fp8_tensor) {
    copy_on_device(tensors.scales.address, tensors.scale->address, sizeof(float), stream);
  }
  if (no_rows) return;
  rows::prepare(device, plan, at).launch(stream, at);
}

DequantizePlan plan_dequantize(const DeviceProperties& device, const DequantizeTensors& tensors,
                               const DequantizeOptions& options, SourceLoc at) {
  rows::Caller caller{"dequantize", at};
  DequantizePlan plan;
  DequantizeTensors& t = plan.tensors;
  t = tensors;
  take_rows(t.y, t.q, "y", t.tokens_per_expert, caller);
  const bool experts = t.tokens_per_expert.has_value();
  plan.coding =
      coding_of({.format = options.format, .layout = options.layout, .group = options.group},
                t.q.type, t.scales.type);
  check_rows(t.y, t.q, "y", plan.coding, options.tail, caller);
  check_given(t.decode_scale, "decode_scale", QuantFormat::nvfp4, options.format, caller);
  t.scales = experts ? scales_of_batch(tensors.scales, plan.coding, t.q, caller)
                     : scales_view(tensors.scales, plan.coding, t.q, caller);
  rows::check_apart(t.scales, "scales", t.y, "y", caller);
  if (t.decode_scale) rows::check_apart(*t.decode_scale, "decode_scale", t.y, "y", caller);
  if (experts) rows::check_apart(*t.tokens_per_expert, "tokens_per_expert", t.y, "y", caller);
  // Rows of four-bit codes have whole accesses; where offsets are less aligned, those split up.
  int elems = t.q.type == e2m1 ? 8 : rows::common_vector(t.y.type, std::array{t.y, t.q});
  const std::int64_t h = rows::row_elems(t.y);
  while (h % elems != 0)
    elems /= 2;
  plan.tile = choose_dequantize_tile(device, rows::as_matrix(t.y), t.q.type, elems);
  plan.flat = !experts && in_one_piece(plan.coding, h, {&t.y, &t.q, &t.scales}) &&
              size(t.y) / elems < std::int64_t{1} << 31;
  const std::int64_t row_count = t.y.shape[static_cast<std::size_t>(t.y.rank - 2)];
  plan.launch = rows::row_tile_launch(plan.tile, row_count, h, caller);
  if (experts) {
    plan.launch = rows::launch_of_batch(plan.launch, t.y.shape[0], caller);
    plan.tokens_arg = rows::rows_arg(*t.tokens_per_expert);
  }
  if (plan.flat) {
    t.y = in_rows_of(t.y, elems);
    t.q = in_rows_of(t.q, elems);
    t.scales = in_rows_of(t.scales, 1);
    const std::int64_t accesses = std::int64_t{plan.tile.threads} * plan.tile.accesses;
    plan.launch.grid = {static_cast<int>(rows::ceil_div(t.y.shape[0], accesses)), 1, 1};
    plan.tile.grid = rows::TileGrid::numbered;
  }
  plan.q_arg = arg_of_rows(t.q);
  plan.y_arg = arg_of_rows(t.y);
  plan.scales_arg = experts ? scales_arg_of_batch(t.scales, plan.coding)
                    : options.layout == ScaleLayout::row ? rows::rows_arg(t.scales)
                                                         : scales_arg_of(t.scales, options.layout);
  if (t.decode_scale) plan.decode_arg = tensor_arg(*t.decode_scale);
  return plan;
}

std::string DequantizePlan::key() const {
  return "dequantize/5 " + tilewright::to_string(coding) + " " + rows::to_string(tile) +
         (flat ? " flat | " : " | ") + to_string(q_arg) + " | " + to_string(scales_arg) + " | " +
         to_string(y_arg) + " | " + rows::key_text(decode_arg) +
         (tokens_arg ? " | experts " + to_string(*tokens_arg) : "");
}

Parameters DequantizePlan::parameters() const {
  Parameters parameters;
  pack(parameters, q_arg, tensors.q);
  pack(parameters, scales_arg, tensors.scales);
  pack(parameters, y_arg, tensors.y);
  if (decode_arg) pack(parameters, *decode_arg, *tensors.decode_scale);
  if (tokens_arg) pack(parameters, *tokens_arg, *tensors.tokens_per_expert);
  return parameters;
}

void dequantize(const Stream& stream, const DequantizeTensors& tensors,
                const DequantizeOptions& options, SourceLoc at) {
  DequantizePlan plan = plan_dequantize(stream.device().properties(), tensors, options, at);
  if (size(plan.tensors.y) == 0) return;
  rows::prepare(stream.device(), plan, at).launch(stream, at);
}

}  // namespace tilewright
