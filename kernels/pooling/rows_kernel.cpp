// SPDX-License-Identifier: Apache-2.0
// The device side of single rows: a block takes one, and normalises it.
#include "kernels/pooling/pooling.h"
#include "kernels/rows/row_threads.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

constexpr float kLeastNorm = 1e-12f;

class PoolRowsKernel {
 public:
  PoolRowsKernel(const PoolingOptions& options, const rows::RowShape& shape)
      : options_(options), shape_(shape) {}

  void operator()(const Tensor& source, const Tensor& cu_seqlens, const Tensor& out) const {
    const rows::RowThreads threads(shape_);
    Value sequence = block_idx().x;
    Type index = is_short_extent(source.shape()[0].value()) ? s32 : s64;
    const Chosen chosen = row_of(cu_seqlens, sequence);
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
  Chosen row_of(const Tensor& cu_seqlens, const Value& sequence) const {
    if (options_.mode == PoolingMode::mean) return {sequence, constant(pred, true)};
    Value begin = cu_seqlens(sequence), end = cu_seqlens(sequence + 1);
    return {options_.mode == PoolingMode::cls ? begin : end - 1, begin < end};
  }

  void normalise(const rows::RowThreads& threads, std::vector<Fragment>& row) const {
    std::vector<Value> sums;
    for (const Fragment& access : row) {
      Var sum(f32, 0.0f);
      for (int i = 0; i < shape_.vector_elems; ++i)
        sum = fma(access[i], access[i], sum);
      sums.emplace_back(sum);
    }
    Value norm = sqrt(threads.sum(rows::tree_sum(std::move(sums))));
    Value factor = constant(f32, 1.0f) / max(norm, constant(f32, kLeastNorm), NanMode::propagate);
    for (Fragment& access : row)
      access = access * factor;
  }

  PoolingOptions options_;
  rows::RowShape shape_;
};

}  // namespace

Traced PoolRowsPlan::trace(ptx::Target target) const {
  TraceOptions trace_options{.name = "pooling_rows_" + std::string(name(source.type)),
                             .target = target,
                             .block = {shape.threads(), 1, 1}};
  return tilewright::trace(trace_options, PoolRowsKernel(options, shape), source_arg, cu_arg,
                           out_arg);
}

}  // namespace tilewright
