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
      const Source source = source_of(y, share.column);
      constexpr int kLoadsInFlight = 8;
      for (int first = 0; first < c_.k; first += kLoadsInFlight) {
        int count = std::min(kLoadsInFlight, c_.k - first);
        std::vector<Term> terms;
        for (int k = first; k < first + count; ++k)
          terms.push_back(term(source, slots[k], factors[k]));
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

  /// A column of y, with all of its addresses that does not wait for slots.
  struct Source {
    const Tensor& y;
    Value first;      // bytes, of row 0
    Value row_bytes;  // from one row to the next
  };
  static Source source_of(const Tensor& y, const Value& column) {
    Value stride = to_value(y.layout().stride()[0].value()).to(s64);
    return {y, y(0, column).address(), (stride * bytes(y.type())).bitcast(u64)};
  }

  /// A choice without a row adds -0 * 0 = -0, which changes no sum.
  Term term(const Source& source, const Value& slot, const Value& factor) const {
    Value row = slot.bitcast(u32);  // -1 is beyond all rows
    Int count = source.y.shape()[0].value();
    Value exists = is_short_extent(count) ? row < to_value(count).to(s32).bitcast(u32) : slot >= 0;
    const int elems = c_.tile.vector_elems;
    const Tensor access(source.y.type(), MemorySpace::global,
                        source.first + row.to(u64) * source.row_bytes, make_row_major(Shape{elems}),
                        elems * bytes(source.y.type()));
    return {select(exists, factor, -0.0f), load_if(exists, access(0), elems)};
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
