// SPDX-License-Identifier: Apache-2.0
// The host side of quantize and dequantize: checks, the threads of a group, access widths.
#include "kernels/quantize/quantize.h"
#include "tilewright/stream.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tilewright {
namespace {

void check_codes(const View& q, const rows::Caller& caller) {
  if (q.type == e4m3) return;
  caller.refuse("q has type " + std::string(name(q.type)) + "; it must be e4m3");
}

/// The scales as a matrix [T, groups of a row], bytes for ue8m0.
View scale_matrix(const View& scales, QuantFormat format, const View& x,
                  const rows::Caller& caller) {
  if (scales.type != f32 && scales.type != ue8m0) {
    caller.refuse("scales has type " + std::string(name(scales.type)) +
                  "; it must be f32 or ue8m0");
  }
  bool blocks = format == QuantFormat::fp8_block;
  std::int64_t groups = blocks ? x.shape[1] / kQuantBlock : 1;
  std::int64_t row_count = format == QuantFormat::fp8_tensor ? 1 : x.shape[0];
  View matrix = blocks ? rows::folded(scales, "scales", caller) : scales;
  bool fits = blocks ? matrix.shape[0] == row_count && matrix.shape[1] == groups
                     : scales.rank == 1 && scales.shape[0] == row_count;
  if (!fits) {
    caller.refuse("scales is " + to_string(scales) + "; it must have " + std::to_string(row_count) +
                  (blocks ? " rows of " : " groups of ") + std::to_string(groups) + " element" +
                  (groups == 1 ? "" : "s"));
  }
  if (!blocks) {
    matrix.rank = 2;
    matrix.shape[1] = 1;
    matrix.stride[1] = 1;
  }
  if (matrix.type == ue8m0) matrix.type = u8;
  return matrix;
}

void check_rows(const View& wide, const View& q, const char* which, QuantFormat format,
                const rows::Caller& caller) {
  rows::check_real(wide, which, caller);
  check_codes(q, caller);
  if (wide.shape[0] != q.shape[0] || wide.shape[1] != q.shape[1]) {
    caller.refuse(std::string(which) + " is " + to_string(wide) + " and q " + to_string(q) +
                  "; the shapes must be equal");
  }
  if (q.shape[1] == 0) caller.refuse("rows have 0 elements; they must have some");
  if (format == QuantFormat::fp8_block && q.shape[1] % kQuantBlock != 0) {
    caller.refuse("rows have " + std::to_string(q.shape[1]) +
                  " elements; fp8_block takes multiples of 128");
  }
  rows::check_apart(wide, which, q, "q", caller);
}

/// Quotients need correct remainders, which lose bits below 2^-149: a scale of at least 2^-92 and a
/// quotient of at least 2^-10, half the smallest code, keep them.
Division division_of(const QuantizeTensors& t, const QuantizeOptions& options) {
  constexpr float kLeastFloor = 448 * 0x1p-92f;
  if (!options.exact || t.scales.type == u8) return Division::product;
  const bool given = options.format == QuantFormat::fp8_tensor;
  return given || options.floor < kLeastFloor ? Division::exact : Division::corrected;
}

void check_length(const QuantizeConfig& config, const rows::Caller& caller) {
  if (config.accesses <= kMaxQuantizeAccesses) return;
  caller.refuse("rows have " + std::to_string(config.h) + " elements; with accesses of " +
                std::to_string(config.vector_elems) + " they must have at most " +
                std::to_string(1024 * kMaxQuantizeAccesses * config.vector_elems));
}

QuantizeConfig configure(const DeviceProperties& device, const QuantizeTensors& t,
                         const QuantizeOptions& options, const rows::Caller& caller) {
  QuantizeConfig config;
  config.format = options.format;
  config.division = division_of(t, options);
  config.power_of_two = t.scales.type == u8;
  config.h = t.x.shape[1];
  bool blocks = options.format == QuantFormat::fp8_block;
  config.group = blocks ? kQuantBlock : config.h;
  // Of whole rows; where addresses and strides are not aligned to it, an access splits up.
  config.vector_elems = 128 / bits(t.x.type);
  while (config.group % config.vector_elems != 0)
    config.vector_elems /= 2;
  choose_threads(config, device, t.x);
  check_length(config, caller);
  config.wide_index = t.x.shape[0] * (config.h / config.group) > (std::int64_t{1} << 30);
  return config;
}

void check_scales(const QuantizeTensors& t, const QuantizeOptions& options,
                  const rows::Caller& caller) {
  bool given = options.format == QuantFormat::fp8_tensor;
  if (given && !t.scale) {
    caller.refuse("scale is absent; fp8_tensor takes one f32 scale, fp8_token finds its own");
  }
  if (!given && t.scale) caller.refuse("scale is given; only fp8_tensor takes one");
  if (given && t.scales.type != f32) {
    caller.refuse("scales has type " + std::string(name(t.scales.type)) +
                  "; with fp8_tensor it must be f32, as scale is");
  }
  if (t.scale && t.scale->type != f32) {
    caller.refuse("scale has type " + std::string(name(t.scale->type)) + "; it must be f32");
  }
  if (t.scale) rows::check_vector(*t.scale, "scale", 1, caller);
  if (!std::isfinite(options.floor) || options.floor < 1e-30f) {
    caller.refuse("floor=" + std::to_string(options.floor) +
                  "; it must be finite and at least 1e-30");
  }
}

constexpr DynamicModes kRows{.extents = 1, .strides = 1};

}  // namespace

QuantizePlan plan_quantize(const DeviceProperties& device, const QuantizeTensors& tensors,
                           const QuantizeOptions& options, SourceLoc at) {
  rows::Caller caller{"quantize", at};
  QuantizePlan plan;
  plan.options = options;
  QuantizeTensors& t = plan.tensors;
  t = tensors;
  t.x = rows::folded(tensors.x, "x", caller);
  t.q = rows::folded(tensors.q, "q", caller);
  check_rows(t.x, t.q, "x", options.format, caller);
  check_scales(t, options, caller);
  t.scales = scale_matrix(t.scales, options.format, t.x, caller);
  rows::check_apart(t.scales, "scales", t.q, "q", caller);
  rows::check_apart(t.scales, "scales", t.x, "x", caller);
  plan.config = configure(device, t, options, caller);
  plan.x_arg = tensor_arg(t.x, kRows);
  plan.q_arg = tensor_arg(t.q, kRows);
  // An absent tensor takes part as x: the traced code does not touch it.
  plan.scale_arg = t.scale ? tensor_arg(*t.scale) : plan.x_arg;
  plan.scales_arg = tensor_arg(t.scales, kRows);
  std::int64_t groups = t.x.shape[0] * (plan.config.h / plan.config.group);
  std::int64_t blocks = rows::ceil_div(groups, plan.config.groups_per_block);
  if (blocks > 2'147'483'647) {
    caller.refuse(to_string(t.x) + " takes " + std::to_string(blocks) +
                  " blocks; a launch has 2147483647");
  }
  plan.launch.grid.x = static_cast<int>(blocks);
  plan.launch.block.x = plan.config.threads();
  return plan;
}

std::string QuantizePlan::key() const {
  const QuantizeConfig& c = config;
  return "quantize/1 f=" + std::to_string(static_cast<int>(c.format)) +
         " g=" + std::to_string(c.group) + " v=" + std::to_string(c.vector_elems) +
         " t=" + std::to_string(c.threads_per_group) + "x" + std::to_string(c.groups_per_block) +
         " n=" + std::to_string(c.accesses) + " d=" + std::to_string(static_cast<int>(c.division)) +
         (c.power_of_two ? " pow2" : "") + (c.wide_index ? " wide" : "") + " | " +
         to_string(x_arg) + " | " + to_string(q_arg) + " | " + to_string(scales_arg) +
         (tensors.scale ? " | " + to_string(scale_arg) : "");
}

Parameters QuantizePlan::parameters() const {
  Parameters parameters;
  pack(parameters, x_arg, tensors.x);
  pack(parameters, scale_arg, tensors.scale.value_or(tensors.x));
  pack(parameters, q_arg, tensors.q);
  pack(parameters, scales_arg, tensors.scales);
  parameters.add(options.floor);
  return parameters;
}

void quantize(const Stream& stream, const QuantizeTensors& tensors, const QuantizeOptions& options,
              SourceLoc at) {
  QuantizePlan plan = plan_quantize(stream.device().properties(), tensors, options, at);
  if (plan.tensors.x.shape[0] == 0) return;
  rows::prepare(stream.device(), plan, at).launch(stream, at);
}

DequantizePlan plan_dequantize(const DeviceProperties& device, const DequantizeTensors& tensors,
                               QuantFormat format, SourceLoc at) {
  rows::Caller caller{"dequantize", at};
  DequantizePlan plan;
  plan.format = format;
  DequantizeTensors& t = plan.tensors;
  t.q = rows::folded(tensors.q, "q", caller);
  t.y = rows::folded(tensors.y, "y", caller);
  check_rows(t.y, t.q, "y", format, caller);
  t.scales = scale_matrix(tensors.scales, format, t.q, caller);
  rows::check_apart(t.scales, "scales", t.y, "y", caller);
  plan.power_of_two = t.scales.type == u8;
  std::int64_t columns = t.y.shape[1];
  plan.tile =
      choose_dequantize_tile(device, t.y, rows::common_vector(t.y.type, std::array{t.y, t.q}));
  constexpr DynamicModes kMatrix{.extents = 0b11, .strides = 0b01};
  plan.q_arg = tensor_arg(t.q, kMatrix);
  plan.y_arg = tensor_arg(t.y, kMatrix);
  plan.scales_arg = tensor_arg(t.scales, kMatrix);
  plan.launch = rows::row_tile_launch(plan.tile, t.y.shape[0], columns, caller);
  plan.tiles_n = rows::tiles_along_row(plan.tile, columns);
  return plan;
}

std::string DequantizePlan::key() const {
  return "dequantize/1 f=" + std::to_string(static_cast<int>(format)) + " " +
         rows::to_string(tile) + (power_of_two ? " pow2" : "") + " | " + to_string(q_arg) + " | " +
         to_string(scales_arg) + " | " + to_string(y_arg);
}

Parameters DequantizePlan::parameters() const {
  Parameters parameters;
  pack(parameters, q_arg, tensors.q);
  pack(parameters, scales_arg, tensors.scales);
  pack(parameters, y_arg, tensors.y);
  parameters.add(static_cast<std::int32_t>(tiles_n));
  return parameters;
}

void dequantize(const Stream& stream, const DequantizeTensors& tensors, QuantFormat format,
                SourceLoc at) {
  DequantizePlan plan = plan_dequantize(stream.device().properties(), tensors, format, at);
  if (plan.tensors.y.shape[0] == 0) return;
  rows::prepare(stream.device(), plan, at).launch(stream, at);
}

}  // namespace tilewright
