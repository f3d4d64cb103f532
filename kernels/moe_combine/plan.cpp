// SPDX-License-Identifier: Apache-2.0
// The host side of moe_combine: checks, access width, blocks.
#include "kernels/moe_combine/moe_combine.h"
#include "kernels/rows/row_arg.h"
#include "kernels/rows/row_shape.h"
#include "kernels/rows/row_tile_space.h"
#include "tilewright/stream.h"

#include <vector>

namespace tilewright {
namespace {

constexpr std::int64_t kMaxChoices = 64;

struct Checks {
  const MoeCombineTensors& t;
  rows::Caller caller;

  void matrix(const View& view, const char* which) const {
    rows::check_real(view, which, caller);
    std::string what = std::string(which) + " is " + to_string(view);
    if (view.rank != 2) caller.refuse(what + "; it must have two modes");
    if (view.shape[1] == 0) caller.refuse(what + "; rows must have elements");
    if (view.shape[1] > 1 && view.stride[1] != 1)
      caller.refuse(what + "; its last stride must be 1");
    if (view.shape[1] != t.y.shape[1])
      caller.refuse(what + " and y " + to_string(t.y) + "; their rows must have the same length");
  }

  void tokens(const View& view, const char* which) const {
    if (view.shape[0] != t.weights.shape[0]) {
      caller.refuse(std::string(which) + " is " + to_string(view) + " and weights " +
                    to_string(t.weights) + "; T must be equal");
    }
  }

  void choices() const {
    std::string what = "weights is " + to_string(t.weights);
    bool matrix = t.weights.rank == 2 && t.weights.type == f32;
    if (!matrix) caller.refuse(what + "; it must be f32[T,K]");
    std::int64_t k = t.weights.shape[1];
    if (k < 1 || k > kMaxChoices)
      caller.refuse(what + "; K must be 1 to " + std::to_string(kMaxChoices));
    if (k > 1 && t.weights.stride[1] != 1) caller.refuse(what + "; its last stride must be 1");
    bool fits =
        t.slot.type == s32 && size(t.slot) == t.weights.shape[0] * k && is_row_major(t.slot);
    if (!fits) {
      caller.refuse("slot is " + to_string(t.slot) + "; it must be " +
                    std::to_string(t.weights.shape[0] * k) + " contiguous elements of s32, T K");
    }
  }

  void memory(const MoeCombineOptions& options) const {
    if (options.accumulate && t.shared)
      caller.refuse("accumulate=true, and shared is given; the sum begins with one of them");
    rows::check_apart(t.y, "y", t.out, "out", caller);
    rows::check_apart(t.slot, "slot", t.out, "out", caller);
    rows::check_apart(t.weights, "weights", t.out, "out", caller);
    if (t.shared && *t.shared != t.out)
      rows::check_apart(*t.shared, "shared", t.out, "out", caller);
  }
};

View with_rows_of(const View& slot, std::int64_t tokens, std::int64_t k) {
  View matrix = slot;
  matrix.rank = 2;
  matrix.shape = {tokens, k};
  matrix.stride = {k, 1};
  return matrix;
}

}  // namespace

MoeCombinePlan plan_moe_combine(const DeviceProperties& device, const MoeCombineTensors& tensors,
                                const MoeCombineOptions& options, SourceLoc at) {
  rows::Caller caller{"moe_combine", at};
  Checks checks{tensors, caller};
  checks.matrix(tensors.y, "y");
  checks.matrix(tensors.out, "out");
  checks.choices();
  checks.tokens(tensors.out, "out");
  if (tensors.shared) {
    checks.matrix(*tensors.shared, "shared");
    checks.tokens(*tensors.shared, "shared");
  }
  checks.memory(options);
  MoeCombinePlan plan;
  plan.tensors = tensors;
  if (options.accumulate) plan.tensors.shared = tensors.out;
  MoeCombineTensors& t = plan.tensors;
  t.slot = with_rows_of(t.slot, t.weights.shape[0], t.weights.shape[1]);
  plan.config.k = static_cast<int>(t.weights.shape[1]);
  std::vector<View> accessed{t.y, t.out};
  if (t.shared) accessed.push_back(*t.shared);
  static const tune::Space space = rows::row_tile_space("moe_combine", rows::TileAccesses::one);
  plan.config.tile =
      rows::choose_row_tile(space, device, t.out, rows::common_vector(t.y.type, accessed));
  plan.y_arg = rows::rows_arg(t.y);
  plan.out_arg = rows::rows_arg(t.out);
  if (t.shared) plan.start_arg = rows::rows_arg(*t.shared);
  plan.slot_arg = rows::rows_arg(t.slot);
  plan.weights_arg = rows::rows_arg(t.weights);
  plan.launch = rows::row_tile_launch(plan.config.tile, t.out.shape[0], t.out.shape[1], caller);
  return plan;
}

std::string MoeCombinePlan::key() const {
  return "moe_combine/4 " + rows::to_string(config.tile) + " | " + to_string(y_arg) + " | " +
         to_string(slot_arg) + " | " + to_string(weights_arg) + " | " + rows::key_text(start_arg) +
         " | " + to_string(out_arg);
}

Parameters MoeCombinePlan::parameters() const {
  Parameters parameters;
  pack(parameters, slot_arg, tensors.slot);
  pack(parameters, y_arg, tensors.y);
  pack(parameters, weights_arg, tensors.weights);
  if (start_arg) pack(parameters, *start_arg, *tensors.shared);
  pack(parameters, out_arg, tensors.out);
  return parameters;
}

void launch_moe_combine(const Stream& stream, const MoeCombinePlan& plan, SourceLoc at) {
  if (plan.tensors.out.shape[0] == 0) return;
  rows::prepare(stream.device(), plan, at).launch(stream, at);
}

void moe_combine(const Stream& stream, const MoeCombineTensors& tensors,
                 const MoeCombineOptions& options, SourceLoc at) {
  launch_moe_combine(stream, plan_moe_combine(stream.device().properties(), tensors, options, at),
                     at);
}

}  // namespace tilewright
