// SPDX-License-Identifier: Apache-2.0
// The device side of means: warps take turns at rows, then their sums meet, then those of a
// cluster.
#include "kernels/pooling/sequence.h"
#include "kernels/rows/row_threads.h"
#include "tilewright/cluster.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <vector>

namespace tilewright {
namespace {

class PoolMeanKernel {
 public:
  explicit PoolMeanKernel(const MeanConfig& config) : c_(config) {}

  void operator()(const Tensor& hidden, const Tensor& bounds, const std::optional<Tensor>& mask,
                  const Tensor& out) const {
    Value work = block_idx().x / c_.splits;
    Value sequence = work / c_.strips;
    Value first_column = work % c_.strips * c_.strip_columns();
    if (c_.few > 0) {
      const Value column = first_column + lane_idx() * c_.vector_elems;
      write_few_rows(hidden, bounds, mask, out, {sequence, column});
      return;
    }
    const auto [begin, end] = sequence_of(bounds, c_.bounds, sequence, 32 * c_.warps);
    Value share = (end - begin + (c_.splits - 1)) / c_.splits;
    Value first = begin + share * rank();
    const Part part{hidden, mask, first, min(first + share, end),
                    first_column + lane_idx() * c_.vector_elems};
    const Sums sums = sums_of(part);

    Tensor of_warps =
        shared(f32, Layout(Shape{c_.warps, c_.strip_columns()}, Stride{c_.strip_columns(), 1}));
    Tensor counts = shared(s32, Layout(Shape{c_.warps}));
    store(of_warps(warp_idx(), lane_idx() * c_.vector_elems), sums.columns);
    if_(lane_idx() == 0, [&] { counts(warp_idx()) = sums.count; });
    barrier();
    Value column = linear_thread_idx() % c_.strip_columns();
    std::vector<Value> of_column;
    of_column.reserve(static_cast<std::size_t>(c_.warps));
    for (int warp = 0; warp < c_.warps; ++warp)
      of_column.emplace_back(of_warps(warp, column));
    Value total = rows::tree_sum(std::move(of_column));
    Value count = reduce(load(counts(0), c_.warps), add);
    auto finish = [&](const Value& sum, const Value& rows) {
      if_(linear_thread_idx() < c_.strip_columns() &&
              first_column + column < static_cast<int>(c_.columns),
          [&] {
            Value mean = select(rows == 0, 0.0f, sum / rows.to(f32));
            out(sequence, first_column + column) = mean.to(out.type());
          });
    };
    if (c_.splits == 1) {
      finish(total, count);
    } else {
      of_cluster(total, count, column, finish);
    }
  }

 private:
  struct Place {
    Value sequence, column;
  };
  /// One after the other: wherever the sequence begins, its mean has the same bits.
  void write_few_rows(const Tensor& hidden, const Tensor& bounds, const std::optional<Tensor>& mask,
                      const Tensor& out, const Place& to) const {
    const Value in_columns = to.column < static_cast<int>(c_.columns);
    const Value rows = to_value(hidden.shape()[0].value()).to(s32);
    std::vector<Fragment> loaded, masks;
    for (int row = 0; row < c_.few; ++row) {
      const Value exists = row < rows;
      loaded.push_back(load_if(exists && in_columns, hidden(row, to.column), c_.vector_elems));
      if (mask) masks.push_back(load_if(exists, (*mask)(row), 1));
    }
    const auto [begin, end] = sequence_of(bounds, c_.bounds, to.sequence, 32 * c_.warps);
    Fragment total(f32, c_.vector_elems);
    for (int e = 0; e < c_.vector_elems; ++e)
      total[e] = 0.0f;
    Var count(s32, 0);
    for (int row = 0; row < c_.few; ++row) {
      const auto i = static_cast<std::size_t>(row);
      const Value mine = begin <= row && row < end;
      const Value counted = mask ? mine && masks[i][0].get().to(s32) != 0 : mine;
      count = count + select(counted, constant(s32, 1), constant(s32, 0));
      const Fragment wide = loaded[i].to(f32);
      for (int e = 0; e < c_.vector_elems; ++e)
        total[e] = total[e].get() + select(counted, wide[e].get(), 0.0f);
    }
    const Value divisor = count.to(f32);
    for (int e = 0; e < c_.vector_elems && c_.few > 1; ++e)
      total[e] = select(count == 0, 0.0f, total[e].get() / divisor);
    store_if(in_columns, out(to.sequence, to.column), total.to(out.type()));
  }

  /// What a thread sums.
  struct Part {
    const Tensor& hidden;
    const std::optional<Tensor>& mask;
    Value first, end, column;
  };
  struct Sums {
    Fragment columns;
    Value count;  // of rows
  };

  static Value add(const Value& a, const Value& b) { return a + b; }
  Value rank() const { return c_.splits == 1 ? constant(s32, 0) : cluster_rank(); }

  /// Trees of eight rows, added with compensation.
  Sums sums_of(const Part& part) const {
    constexpr int kInFlight = MeanConfig::kRowsInFlight;
    std::vector<rows::LongSum> sums(static_cast<std::size_t>(c_.vector_elems));
    Var count(s32, 0);
    Type index = is_short_extent(part.hidden.shape()[0].value()) ? s32 : s64;
    for_(part.first + warp_idx(), part.end, c_.warps * kInFlight, [&](const Value& row) {
      std::vector<Fragment> loaded;
      std::vector<Value> counted;
      for (int j = 0; j < kInFlight; ++j) {
        Value at = row + j * c_.warps;
        Value exists = at < part.end;
        loaded.push_back(load_if(exists && part.column < static_cast<int>(c_.columns),
                                 part.hidden(at.to(index), part.column), c_.vector_elems));
        if (part.mask) {
          counted.push_back(load_if(exists, (*part.mask)(at.to(index)), 1)[0].get().to(s32) != 0);
        } else {
          counted.push_back(exists);
        }
      }
      for (const Value& each : counted)
        count = count + select(each, constant(s32, 1), constant(s32, 0));
      accumulate(loaded, counted, sums);
    });
    Fragment totals(f32, c_.vector_elems);
    for (int i = 0; i < c_.vector_elems; ++i)
      totals[i] = sums[static_cast<std::size_t>(i)].total();
    return {totals, count};
  }

  void accumulate(const std::vector<Fragment>& loaded, const std::vector<Value>& counted,
                  std::vector<rows::LongSum>& sums) const {
    std::vector<Fragment> wide;
    wide.reserve(loaded.size());
    for (const Fragment& each : loaded)
      wide.push_back(each.to(f32));
    for (int i = 0; i < c_.vector_elems; ++i) {
      std::vector<Value> leaves;
      for (std::size_t j = 0; j < wide.size(); ++j)
        leaves.push_back(select(counted[j], wide[j][i].get(), 0.0f));
      sums[static_cast<std::size_t>(i)].add(rows::tree_sum(std::move(leaves)));
    }
  }

  /// The first block adds what the others of its cluster have, in their order.
  template <class Finish>
  void of_cluster(const Value& total, const Value& count, const Value& column,
                  Finish&& finish) const {
    Tensor totals = shared(f32, Layout(Shape{c_.strip_columns()}));
    Tensor rows_of_block = shared(s32, Layout(Shape{1}));
    if_(linear_thread_idx() < c_.strip_columns(), [&] { totals(column) = total; });
    if_(linear_thread_idx() == 0, [&] { rows_of_block(0) = count; });
    cluster_barrier();
    if_(rank() == 0, [&] {
      std::vector<Value> sums{total}, counts{count};
      for (int r = 1; r < c_.splits; ++r) {
        sums.emplace_back(peer(totals, r)(column));
        counts.emplace_back(peer(rows_of_block, r)(0));
      }
      finish(rows::tree_sum(std::move(sums)), rows::tree_sum(std::move(counts)));
    });
    cluster_barrier();  // peers stay until they have been read
  }

  const MeanConfig& c_;
};

}  // namespace

Traced PoolMeanPlan::trace(ptx::Target target) const {
  TraceOptions options{.name = "pooling_mean_" + std::string(name(hidden.type)),
                       .target = target,
                       .block = {32 * config.warps, 1, 1}};
  if (config.splits > 1) options.cluster = {config.splits, 1, 1};
  return tilewright::trace(options, PoolMeanKernel(config), hidden_arg, bounds_arg, mask_arg,
                           out_arg);
}

}  // namespace tilewright
