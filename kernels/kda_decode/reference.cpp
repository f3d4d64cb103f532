// SPDX-License-Identifier: Apache-2.0
// The delta rule in float64, head by head and token by token.
#include "kernels/kda_decode/reference.h"

#include "kernels/kda/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright {
namespace {

using Doubles = std::vector<double>;

class Reference {
 public:
  Reference(const KdaDecodeOptions& options, const HostTensors& tensors,
            const DeltaRuleNames& names)
      : options_(options), tensors_(tensors), names_(names) {
    const Array& q = tensors.at("q");
    const Array& v = tensors.at("v");
    std::size_t rank = q.shape.size();  // [N, T, H, K], or [tokens, H, K]
    heads_ = q.shape[rank - 2], k_ = q.shape[rank - 1];
    v_heads_ = v.shape[rank - 2], v_ = v.shape[rank - 1];
    tokens_ = element_count(std::span(q.shape).first(rank - 2));
    requests(q);
  }

  DeltaRuleResults run() {
    q_ = values("q"), k_values_ = values("k"), v_values_ = values("v");
    a_ = values(names_.a), b_ = values(names_.b);
    a_log_ = values("A_log"), dt_bias_ = values("dt_bias");
    results_.state = values(names_.state);
    if (results_.state.empty())
      results_.state.assign((first_.size() - 1) * at(v_heads_ * v_ * k_), 0);
    results_.out.assign(at(tokens_ * v_heads_ * v_), std::numeric_limits<double>::quiet_NaN());
    results_.snapshots.assign(results_.out.size() * at(k_),
                              std::numeric_limits<double>::quiet_NaN());
    Doubles slots = values("indices");
    for (std::size_t n = 0; n + 1 < first_.size(); ++n) {
      double slot = slots.empty() ? static_cast<double>(n) : slots[n];
      for (std::int64_t head = 0; head < v_heads_ && slot >= 0; ++head)
        run_head(n, head, static_cast<std::int64_t>(slot));
    }
    return results_;
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  Doubles values(const char* name) const {
    const Array* array = tensors_.find(name);
    return array == nullptr ? Doubles{} : to_doubles(*array);
  }

  /// The first token of each request, and where the last one ends.
  void requests(const Array& q) {
    for (double first : values("cu_seqlens"))
      first_.push_back(static_cast<std::int64_t>(first));
    if (!first_.empty()) return;
    const Array* indices = tensors_.find("indices");
    std::int64_t n = q.shape[0];
    if (indices != nullptr && n == 1) n = indices->shape[0];  // [1, N, ...]
    for (std::int64_t i = 0; i <= n; ++i)
      first_.push_back(n == 0 ? 0 : tokens_ / n * i);
  }

  /// Element (row, column) of a slot's state.
  std::size_t place(std::int64_t slot, std::int64_t head, std::int64_t row, std::int64_t column) {
    std::int64_t base = (slot * v_heads_ + head) * v_ * k_;
    bool vk = options_.state_layout == StateLayout::vk;
    return at(base + (vk ? row * k_ + column : column * v_ + row));
  }

  double decay(std::int64_t of_head, std::int64_t head, std::int64_t i) const {
    if (options_.scalar_gate) return a_[at(of_head)];
    double a = a_[at(of_head * k_ + i)];
    if (a_log_.empty() && !options_.gate.lower_bound) return std::exp(a);
    double u = a + (dt_bias_.empty() ? 0 : dt_bias_[at(head * k_ + i)]);
    return std::exp(kda::log_decay(u, a_log_.empty() ? 0 : a_log_[at(head)], options_.gate));
  }

  double beta(std::int64_t of_head) const {
    double b = b_[at(of_head)];
    if (options_.scalar_gate) return b;
    return (options_.neg_eigval ? 2 : 1) / (1 + std::exp(-b));
  }

  void run_head(std::size_t n, std::int64_t head, std::int64_t slot) {
    Doubles s(at(v_ * k_));
    for (std::int64_t row = 0; row < v_; ++row) {
      for (std::int64_t i = 0; i < k_; ++i)
        s[at(row * k_ + i)] = results_.state[place(slot, head, row, i)];
    }
    for (std::int64_t token = first_[n]; token < first_[n + 1]; ++token)
      run_token(token, head, s);
    for (std::int64_t row = 0; row < v_; ++row) {
      for (std::int64_t i = 0; i < k_; ++i)
        results_.state[place(slot, head, row, i)] = s[at(row * k_ + i)];
    }
  }

  void run_token(std::int64_t token, std::int64_t head, Doubles& s) {
    std::int64_t q_head = token * heads_ + head / (v_heads_ / heads_);
    std::int64_t of_head = token * v_heads_ + head;
    auto part = [&](const Doubles& from, std::int64_t index, std::int64_t count) {
      return std::span(from).subspan(at(index * count), at(count));
    };
    double scale = options_.scale.value_or(1.0f / std::sqrt(static_cast<float>(k_)));
    Doubles q = kda::reference_normalised(part(q_, q_head, k_), scale, true);
    Doubles k = kda::reference_normalised(part(k_values_, q_head, k_), 1, true);
    Doubles factors;
    for (std::int64_t i = 0; i < k_; ++i)
      factors.push_back(decay(of_head, head, i));
    kda::reference_delta_rule({q, k, part(v_values_, of_head, v_), factors, beta(of_head)}, s,
                              std::span(results_.out).subspan(at(of_head * v_), at(v_)));
    std::copy(s.begin(), s.end(),
              results_.snapshots.begin() + static_cast<std::ptrdiff_t>(of_head * v_ * k_));
  }

  const KdaDecodeOptions& options_;
  const HostTensors& tensors_;
  const DeltaRuleNames& names_;
  std::int64_t tokens_ = 0, heads_ = 0, v_heads_ = 0, k_ = 0, v_ = 0;
  std::vector<std::int64_t> first_;
  Doubles q_, k_values_, v_values_, a_, b_, a_log_, dt_bias_;
  DeltaRuleResults results_;
};

}  // namespace

DeltaRuleResults delta_rule_reference(const KdaDecodeOptions& options, const HostTensors& tensors,
                                      const DeltaRuleNames& names) {
  return Reference(options, tensors, names).run();
}

void set_reference(const Arguments& arguments, const char* name, const std::vector<double>& numbers,
                   HostTensors& tensors) {
  const View* view = arguments.find(name);
  if (view == nullptr) return;
  tensors.set(
      make_array(name, f64, {view->shape.begin(), view->shape.begin() + view->rank}, numbers));
}

}  // namespace tilewright
