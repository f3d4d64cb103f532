// SPDX-License-Identifier: Apache-2.0
// The device side of moe_combine: a thread sums one access of a token over its experts.
#include "kernels/moe_combine/moe_combine.h"
#include "kernels/rows/row_index.h"
#include "tilewright/fragment.h"

#include <algorithm>
#include <vector>

namespace tilewright {
namespace {

class CombineKernel {
 public:
  CombineKernel(const MoeCombineConfig& config, std::int64_t columns)
      : c_(config), columns_(columns) {}

  /// No branch stands before the first load.
  void operator()(const Tensor& slot, const Tensor& y, const Tensor& weights,
                  const std::optional<Tensor>& start, const Tensor& out) const {
    const rows::RowShare share =
        rows::row_shares(c_.tile, out.shape()[0].value(), columns_).front();
    Fragment slots = load_if(share.in_rows, slot(share.row, 0), c_.k);
    Fragment factors = load_if(share.in_rows, weights(share.row, 0), c_.k);
    Fragment sum(f32, c_.tile.vector_elems);
    if (start) {
      sum = load_if(share.inside, (*start)(share.row, share.column), c_.tile.vector_elems).to(f32);
    } else {
      sum.fill(0.0f);
    }
    constexpr int kLoadsInFlight = 8;
    for (int first = 0; first < c_.k; first += kLoadsInFlight) {
      int count = std::min(kLoadsInFlight, c_.k - first);
      std::vector<Term> terms;
      for (int k = first; k < first + count; ++k)
        terms.push_back(term(y, slots[k], factors[k], share));
      for (const Term& each : terms) {
        sum = zip_map(each.row.to(f32), sum, [&](const Value& value, const Value& so_far) {
          return fma(each.factor, value, so_far);
        });
      }
    }
    store_if(share.inside, out(share.row, share.column), sum.to(out.type()));
  }

 private:
  struct Term {
    Value factor;
    Fragment row;
  };

  /// A choice without a row adds -0 * 0 = -0, which changes no sum.
  Term term(const Tensor& y, const Value& slot, const Value& factor,
            const rows::RowShare& share) const {
    const rows::IndexedRow from = rows::indexed_row(slot, y.shape()[0].value());
    const int elems = c_.tile.vector_elems;
    return {select(from.exists, factor, -0.0f),
            load_if(share.inside && from.exists, rows::late_access(y, from, share.column, elems),
                    elems)};
  }

  const MoeCombineConfig& c_;
  std::int64_t columns_;
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
  return tilewright::trace(trace_options, CombineKernel(config, tensors.out.shape[1]), slot_arg,
                           y_arg, weights_arg, start_arg, out_arg);
}

}  // namespace tilewright
