// SPDX-License-Identifier: Apache-2.0
// The device side of single rows: a block takes one, and normalises it.
#include "kernels/pooling/sequence.h"
#include "kernels/rows/row_threads.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/thread.h"

#include <optional>
#include <utility>
#include <vector>

namespace tilewright {
namespace {

constexpr float kMostFactor = 1e12f;  // a norm counts as 1e-12 at least

class PoolRowsKernel {
 public:
  PoolRowsKernel(const PoolingOptions& options, SequenceBounds kind, const rows::RowShape& shape)
      : options_(options), kind_(kind), shape_(shape) {}

  void operator()(const Tensor& source, const Tensor& bounds, const Tensor& out) const {
    const rows::RowThreads threads(shape_);
    Value sequence = block_idx().x;
    Type index = is_short_extent(source.shape()[0].value()) ? s32 : s64;
    const Chosen chosen = row_of(bounds, sequence);
    if (shape_.looped) {
      write_long_row(threads, source(chosen.row.to(index), _), chosen.exists, out(sequence, _));
      return;
    }
    rows::Row loaded = threads.load_row(source, chosen.row.to(index), chosen.exists);
    std::vector<Fragment> wide;
    wide.reserve(loaded.size());
    for (const Fragment& access : loaded)
      wide.push_back(access.to(f32));
    if (options_.normalize) normalise(threads, wide);
    for (int j = 0; j < shape_.vectors; ++j)
      threads.store_access(out, sequence, j, wide[static_cast<std::size_t>(j)].to(out.type()));
  }

 private:
  struct Chosen {
    Value row, exists;
  };
  Chosen row_of(const Tensor& bounds, const Value& sequence) const {
    if (options_.mode == PoolingMode::mean) return {sequence, constant(pred, true)};
    const auto [begin, end] = sequence_of(bounds, kind_, sequence, shape_.threads());
    return {options_.mode == PoolingMode::cls ? begin : end - 1, begin < end};
  }

  void normalise(const rows::RowThreads& threads, std::vector<Fragment>& row) const {
    std::vector<Value> sums;
    sums.reserve(row.size());
    for (const Fragment& access : row)
      sums.push_back(rows::sum_of_squares(access));
    Value factor = factor_of(threads.sum({rows::tree_sum(std::move(sums))}));
    for (Fragment& access : row)
      access = access * factor;
  }

  static Value factor_of(const Value& squares) {
    return min(rsqrt_approx(squares), constant(f32, kMostFactor), NanMode::propagate);
  }

  /// A row too long for registers is read for its norm, and again to be written.
  void write_long_row(const rows::RowThreads& threads, const Tensor& source, const Value& exists,
                      const Tensor& out) const {
    std::optional<Value> factor;
    if (options_.normalize) {
      rows::LongSum squares;
      for_accesses(threads, source, exists, [&](const Value&, const Value&, const Fragment& wide) {
        squares.add(rows::sum_of_squares(wide));
      });
      factor.emplace(factor_of(threads.sum({squares.total()})));
    }
    for_accesses(threads, source, exists,
                 [&](const Value& column, const Value& inside, const Fragment& wide) {
                   const Fragment y = factor ? wide * *factor : wide;
                   store_if(inside, out(column), y.to(out.type()));
                 });
  }

  /// In f32, some on their way at once; 0 where there is no row.
  template <class Body>
  void for_accesses(const rows::RowThreads& threads, const Tensor& source, const Value& exists,
                    Body&& body) const {
    constexpr int kAtOnce = 4;
    const auto columns = static_cast<int>(shape_.h);
    const int turn = shape_.threads_per_row * shape_.vector_elems * kAtOnce;
    for_(0, columns, turn, [&](const Value& first) {
      std::vector<Value> at, inside;
      std::vector<Fragment> loaded;
      for (int j = 0; j < kAtOnce; ++j) {
        at.push_back(first + threads.column(j));
        inside.push_back(at.back() < columns);
        loaded.push_back(load_if(exists && inside.back(), source(at.back()), shape_.vector_elems));
      }
      for (std::size_t j = 0; j < loaded.size(); ++j)
        body(at[j], inside[j], loaded[j].to(f32));
    });
  }

  PoolingOptions options_;
  SequenceBounds kind_;
  rows::RowShape shape_;
};

}  // namespace

Traced PoolRowsPlan::trace(ptx::Target target) const {
  TraceOptions trace_options{.name = "pooling_rows_" + std::string(name(source.type)),
                             .target = target,
                             .block = {shape.threads(), 1, 1}};
  return tilewright::trace(trace_options, PoolRowsKernel(options, kind, shape), source_arg,
                           bounds_arg, out_arg);
}

}  // namespace tilewright
