// SPDX-License-Identifier: Apache-2.0
// The host side of the gated activations: checks, views of gate and up, access width.
#include "kernels/gated_activation/gated_activation.h"
#include "kernels/rows/row_tile_space.h"
#include "tilewright/stream.h"

#include <array>
#include <cmath>
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
  if (t.y.shape[0] != t.x.shape[0] || t.y.shape[1] != d) {
    caller.refuse("x is " + to_string(t.x) + " and y " + to_string(t.y) + "; y must have " +
                  std::to_string(t.x.shape[0]) + " rows of " + std::to_string(d) + " elements");
  }
  if (t.bias) rows::check_vector(*t.bias, "bias", n, caller);
  if (t.row_weight) rows::check_vector(*t.row_weight, "row_weight", t.x.shape[0], caller);
}

void check(const GatedTensors& t, const GatedOptions& options, const rows::Caller& caller) {
  rows::check_real(t.x, "x", caller);
  if (t.y.type != t.x.type) {
    caller.refuse("y has type " + std::string(name(t.y.type)) + "; it must be x's type " +
                  std::string(name(t.x.type)));
  }
  if (t.bias) rows::check_like_or_f32(*t.bias, "bias", t.x.type, "x", caller);
  if (t.row_weight && t.row_weight->type != f32) {
    caller.refuse("row_weight has type " + std::string(name(t.row_weight->type)) +
                  "; it must be f32");
  }
  check_shapes(t, options.layout, caller);
  rows::check_apart(t.x, "x", t.y, "y", caller);
  if (t.bias) rows::check_apart(*t.bias, "bias", t.y, "y", caller);
  if (t.row_weight) rows::check_apart(*t.row_weight, "row_weight", t.y, "y", caller);
  if (!std::isfinite(options.limit) || options.limit <= 0) {
    caller.refuse("limit=" + std::to_string(options.limit) + "; it must be finite and above 0");
  }
  if (!std::isfinite(options.alpha)) {
    caller.refuse("alpha=" + std::to_string(options.alpha) + "; it must be finite");
  }
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

/// Every mode but the number of halves stays a parameter: one specialisation serves all shapes.
TensorArg matrix_arg(const View& view) {
  return view.rank == 3 ? tensor_arg(view, {.extents = 0b101, .strides = 0b011})
                        : tensor_arg(view, {.extents = 0b11, .strides = 0b01});
}
TensorArg vector_arg(const View& view) {
  return view.rank == 2 ? tensor_arg(view, {.extents = 0b10, .strides = 0b01})
                        : tensor_arg(view, {.extents = 0b1});
}

/// Elements of one access to y; an access to interleaved x is twice as long.
int vector_elems(const GatedTensors& t, GateLayout layout) {
  std::vector<View> views{t.y, t.x};
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

/// One access a thread: the arithmetic between load and store leaves no registers for more.
const tune::Space& space_of(Activation activation) {
  static const std::array<tune::Space, 5> spaces = [] {
    std::array<tune::Space, 5> made;
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i] =
          rows::row_tile_space(operator_name(static_cast<Activation>(i)), rows::TileAccesses::one);
    }
    return made;
  }();
  return spaces[static_cast<std::size_t>(activation)];
}

}  // namespace

GatedPlan plan_gated_activation(const DeviceProperties& device, const GatedTensors& tensors,
                                const GatedOptions& options, SourceLoc at) {
  rows::Caller caller{operator_name(options.activation), at};
  GatedPlan plan;
  plan.options = options;
  GatedTensors& t = plan.tensors;
  t = tensors;
  t.x = rows::folded(tensors.x, "x", caller);
  t.y = rows::folded(tensors.y, "y", caller);
  check(t, options, caller);
  std::int64_t d = t.y.shape[1];
  if (options.layout == GateLayout::halves) {
    t.x = in_halves(t.x, d);
    if (t.bias) t.bias = in_halves(*t.bias, d);
  }
  plan.config = {options.activation, options.layout, options.clamp_gate, options.round_act,
                 rows::choose_row_tile(space_of(options.activation), device, t.y,
                                       vector_elems(t, options.layout))};
  plan.x_arg = matrix_arg(t.x);
  plan.y_arg = matrix_arg(t.y);
  // An absent tensor takes part as y: the traced code does not touch it.
  plan.bias_arg = t.bias ? vector_arg(*t.bias) : plan.y_arg;
  plan.weight_arg = t.row_weight ? vector_arg(*t.row_weight) : plan.y_arg;
  plan.launch = rows::row_tile_launch(plan.config.tile, t.y.shape[0], d, caller);
  plan.tiles_n = rows::tiles_along_row(plan.config.tile, d);
  return plan;
}

std::string GatedPlan::key() const {
  std::string text =
      std::string(operator_name(config.activation)) + "/2 " + rows::to_string(config.tile) +
      " l=" + std::to_string(static_cast<int>(config.layout)) +
      " c=" + std::to_string(static_cast<int>(config.clamp_gate)) +
      (config.round_act ? " round_act" : "") + " | " + to_string(x_arg) + " | " + to_string(y_arg);
  if (tensors.bias) text += " | bias " + to_string(bias_arg);
  if (tensors.row_weight) text += " | weight " + to_string(weight_arg);
  return text;
}

Parameters GatedPlan::parameters() const {
  Parameters parameters;
  pack(parameters, x_arg, tensors.x);
  pack(parameters, bias_arg, tensors.bias.value_or(tensors.y));
  pack(parameters, weight_arg, tensors.row_weight.value_or(tensors.y));
  pack(parameters, y_arg, tensors.y);
  parameters.add(options.alpha);
  parameters.add(options.limit);
  parameters.add(rows::divisor_parameter(tiles_n));
  return parameters;
}

void gated_activation(const Stream& stream, const GatedTensors& tensors,
                      const GatedOptions& options, SourceLoc at) {
  GatedPlan plan = plan_gated_activation(stream.device().properties(), tensors, options, at);
  if (plan.tensors.y.shape[0] == 0) return;
  rows::prepare(stream.device(), plan, at).launch(stream, at);
}

}  // namespace tilewright
