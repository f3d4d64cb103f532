// SPDX-License-Identifier: Apache-2.0
// The device side of moe_combine: a thread sums one access of a token over its experts.
#include "kernels/moe_combine/moe_combine.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"

#include <algorithm>
#include <vector>

namespace tilewright {
namespace {

class CombineKernel {
 public:
  explicit CombineKernel(const MoeCombineConfig& config) : c_(config) {}

  void operator()(const Tensor& y, const Tensor& slot, const Tensor& weights,
                  const std::optional<Tensor>& start, const Tensor& out, const Value& along) const {
    const rows::RowShare share =
        rows::row_shares(c_.tile, along, out.shape()[0].value(), out.shape()[1].value()).front();
    if_(share.inside, [&] {
      Fragment slots = load(slot(share.row, 0), c_.k);
      Fragment factors = load(weights(share.row, 0), c_.k);
      Fragment sum(f32, c_.tile.vector_elems);
      if (start) {
        sum = load((*start)(share.row, share.column), c_.tile.vector_elems).to(f32);
      } else {
        sum.fill(0.0f);
      }
      constexpr int kLoadsInFlight = 8;
      for (int first = 0; first < c_.k; first += kLoadsInFlight) {
        int count = std::min(kLoadsInFlight, c_.k - first);
        std::vector<Term> terms;
        for (int k = first; k < first + count; ++k)
          terms.push_back(term(y, slots[k], factors[k], share.column));
        for (const Term& each : terms) {
          sum = zip_map(each.row.to(f32), sum, [&](const Value& value, const Value& so_far) {
            return fma(each.factor, value, so_far);
          });
        }
      }
      store(out(share.row, share.column), sum.to(out.type()));
    });
  }

 private:
  struct Term {
    Value factor;
    Fragment row;
  };

  /// A choice without a row adds -0 * 0 = -0, which changes no sum.
  Term term(const Tensor& y, const Value& slot, const Value& factor, const Value& column) const {
    Int count = y.shape()[0].value();
    Type index = is_short_extent(count) ? s32 : s64;
    Value row = slot.to(index);
    Value exists = row >= 0 && row < to_value(count);
    return {select(exists, factor, -0.0f), load_if(exists, y(row, column), c_.tile.vector_elems)};
  }

  const MoeCombineConfig& c_;
};

}  // namespace

Traced MoeCombinePlan::trace(ptx::Target target) const {
  // Without a bound ptxas keeps registers for more blocks by putting one load behind another.
  constexpr int kBlocksOfLoadsInFlight = 8;
  TraceOptions trace_options{
      .name = "moe_combine_" + std::string(name(tensors.y.type)) + "_" + std::to_string(config.k),
      .target = target,
      .block = {config.tile.threads, 1, 1},
      .min_blocks_per_sm = kBlocksOfLoadsInFlight};
  return tilewright::trace(trace_options, CombineKernel(config), y_arg, slot_arg, weights_arg,
                           start_arg, out_arg, rows::divisor_arg());
}

}  // namespace tilewright
