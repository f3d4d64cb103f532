// SPDX-License-Identifier: Apache-2.0
// The device side of rms_norm.
#include "kernels/rms_norm/rms_norm.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <optional>
#include <vector>

namespace tilewright {
namespace {

Value add(const Value& a, const Value& b) { return a + b; }

class RmsNormKernel {
 public:
  RmsNormKernel(const RmsNormConfig& config, Tensor x, std::optional<Tensor> w, Tensor y,
                std::optional<Tensor> rstd, const Value& rows, const Value& eps, const Value& bias)
      : config_(config),
        x_(std::move(x)),
        w_(std::move(w)),
        y_(std::move(y)),
        rstd_(std::move(rstd)),
        rows_(rows),
        eps_(eps),
        bias_(bias),
        lane_(linear_thread_idx() % config.threads_per_row),
        partials_(shared(f32, Layout(Shape{warps_per_row()}))) {}

  void run() const {
    Type index = rows_.type();  // s64 beyond 2^30 rows
    Value first = block_idx().x.to(index) * config_.rows_per_block +
                  (linear_thread_idx() / config_.threads_per_row).to(index);
    if (config_.looped) {
      if_(first < rows_, [&] { normalise_in_two_passes(first); });
    } else {
      one_row(first);
    }
  }

 private:
  using Row = std::vector<Fragment>;  // one fragment an access

  int warps_per_row() const {
    return config_.threads_per_row > 32 ? config_.threads_per_row / 32 : 1;
  }
  std::int64_t row_vectors() const { return config_.h / config_.vector_elems; }

  /// Where access j of this thread begins in the row.
  Value column(int j) const { return (lane_ + j * config_.threads_per_row) * config_.vector_elems; }
  /// Whether access j is inside the row: constant for all but the last one.
  Value inside_row(int j) const {
    return lane_ + j * config_.threads_per_row < static_cast<int>(row_vectors());
  }

  Row load_row(const Tensor& tensor, const Value& row, const Value& active) const {
    Row loaded;
    for (int j = 0; j < config_.vectors; ++j) {
      loaded.push_back(
          load_if(active && inside_row(j), tensor(row, column(j)), config_.vector_elems));
    }
    return loaded;
  }

  Row load_weights() const {
    Row loaded;
    if (!w_) return loaded;
    for (int j = 0; j < config_.vectors; ++j) {
      loaded.push_back(load_if(inside_row(j), (*w_)(column(j)), config_.vector_elems));
    }
    return loaded;
  }

  void one_row(const Value& row) const {
    Value active = row < rows_;
    Row weights = load_weights();  // before the reduction, which does not need them
    Row x = load_row(x_, row, active);
    Value r = reciprocal_rms(sum_of_squares(x));
    if_(active, [&] { finish_row(row, x, weights, r); });
  }

  /// The thread's part of the sum: elements of an access in order, accesses in a tree.
  Value sum_of_squares(const Row& x) const {
    std::vector<Value> sums;
    for (int j = 0; j < config_.vectors; ++j) {
      Fragment wide = x[static_cast<std::size_t>(j)].to(f32);
      sums.push_back(sum_of_access(wide, column(j)));
    }
    while (sums.size() > 1) {
      std::vector<Value> next;
      for (std::size_t i = 0; i + 1 < sums.size(); i += 2)
        next.push_back(sums[i] + sums[i + 1]);
      if (sums.size() % 2 == 1) next.push_back(sums.back());
      sums.swap(next);
    }
    return sums.front();
  }

  Value sum_of_access(const Fragment& wide, const Value& column) const {
    Var sum(f32, 0.0f);
    for (int i = 0; i < wide.size(); ++i) {
      Value element = under_mean(wide[i], column + i);
      sum = fma(element, element, sum);
    }
    return sum;
  }

  Value under_mean(const Value& element, const Value& column) const {
    if (config_.partial == config_.h) return element;
    return select(column < static_cast<int>(config_.partial), element, 0.0f);
  }

  Value reciprocal_rms(const Value& mine) const {
    int width = config_.threads_per_row < 32 ? config_.threads_per_row : 32;
    Value warp_sum = warp_reduce(mine, add, width);
    Value sum = warps_per_row() == 1 ? warp_sum : sum_of_warps(warp_sum);
    return rsqrt_approx(fma(sum, 1.0f / static_cast<float>(config_.partial), eps_));
  }

  /// Every thread adds the warps' sums in the same order.
  Value sum_of_warps(const Value& warp_sum) const {
    if_(lane_idx() == 0, [&] { partials_(warp_idx()) = warp_sum; });
    barrier();
    Fragment all = load(partials_(0), warps_per_row());
    return reduce(all, add);
  }

  void finish_row(const Value& row, const Row& x, const Row& weights, const Value& r) const {
    for (int j = 0; j < config_.vectors; ++j) {
      auto i = static_cast<std::size_t>(j);
      std::optional<Fragment> weight;
      if (w_) weight.emplace(weights[i]);
      store_if(inside_row(j), y_(row, column(j)), scaled(x[i], weight, r));
    }
    if (rstd_) if_(lane_ == 0, [&] { (*rstd_)(row) = r; });
  }

  Fragment scaled(const Fragment& x, const std::optional<Fragment>& weight, const Value& r) const {
    Fragment product = x.to(f32) * r;
    if (!weight) return product.to(y_.type());
    Fragment factor = weight->to(f32);
    if (config_.has_bias) factor = factor + bias_;
    if (config_.order == WeightOrder::after_rounding) product = product.to(x.type()).to(f32);
    return (product * factor).to(y_.type());
  }

  void normalise_in_two_passes(const Value& row) const {
    int step = config_.threads_per_row * config_.vector_elems;
    auto h = static_cast<int>(config_.h);
    Value start = lane_ * config_.vector_elems;
    Var sum(f32, 0.0f);
    for_(start, h, step, [&](const Value& column) {
      Fragment wide = load(x_(row, column), config_.vector_elems).to(f32);
      sum = sum + sum_of_access(wide, column);
    });
    Value r = reciprocal_rms(sum);
    for_(start, h, step, [&](const Value& column) {
      Fragment x = load(x_(row, column), config_.vector_elems);
      std::optional<Fragment> weight;
      if (w_) weight.emplace(load((*w_)(column), config_.vector_elems));
      store(y_(row, column), scaled(x, weight, r));
    });
    if (rstd_) if_(lane_ == 0, [&] { (*rstd_)(row) = r; });
  }

  RmsNormConfig config_;
  Tensor x_;
  std::optional<Tensor> w_;
  Tensor y_;
  std::optional<Tensor> rstd_;
  Value rows_, eps_, bias_;
  Value lane_;  // of the threads that share the row
  Tensor partials_;
};

}  // namespace

Traced RmsNormPlan::trace(ptx::Target target) const {
  TraceOptions trace_options{
      .name = "rms_norm_" + std::string(name(tensors.x.type)) + "_" + std::to_string(config.h),
      .target = target,
      .block = {config.threads(), 1, 1}};
  auto body = [this](const Tensor& x, const Tensor& w, const Tensor& y, const Tensor& rstd,
                     const Value& eps, const Value& bias) {
    Value rows = to_value(x.shape()[0].value());
    std::optional<Tensor> weight;
    if (tensors.w) weight.emplace(w);
    std::optional<Tensor> reciprocal;
    if (tensors.rstd) reciprocal.emplace(rstd);
    RmsNormKernel(config, x, weight, y, reciprocal, rows, eps, bias).run();
  };
  ScalarArg real{f32, {}};
  return tilewright::trace(trace_options, body, x_arg, w_arg, y_arg, rstd_arg, real, real);
}

}  // namespace tilewright
