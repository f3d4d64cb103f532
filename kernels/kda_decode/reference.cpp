// SPDX-License-Identifier: Apache-2.0
// kda_decode in float64, head by head and token by token.
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
  Reference(const KdaDecodeOptions& options, const HostTensors& tensors)
      : options_(options), tensors_(tensors) {
    const Array& q = tensors.at("q");
    const Array& v = tensors.at("v");
    n_ = q.shape[0], t_ = q.shape[1], heads_ = q.shape[2], k_ = q.shape[3];
    v_heads_ = v.shape[2], v_ = v.shape[3];
    const Array* indices = tensors.find("indices");
    if (indices != nullptr && n_ == 1 && t_ > 1 && indices->shape[0] == t_) std::swap(n_, t_);
  }

  void run() {
    state = values("state");
    out.assign(at(n_ * t_ * v_heads_ * v_), std::numeric_limits<double>::quiet_NaN());
    snapshots.assign(out.size() * at(k_), std::numeric_limits<double>::quiet_NaN());
    q_ = values("q"), k_values_ = values("k"), v_values_ = values("v");
    a_ = values("a"), b_ = values("b"), a_log_ = values("A_log"), dt_bias_ = values("dt_bias");
    Doubles slots = values("indices");
    for (std::int64_t n = 0; n < n_; ++n) {
      double slot = slots.empty() ? static_cast<double>(n) : slots[at(n)];
      if (slot < 0) continue;
      for (std::int64_t head = 0; head < v_heads_; ++head)
        run_head(n, head, static_cast<std::int64_t>(slot));
    }
  }

  Doubles state, out, snapshots;

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  Doubles values(const char* name) const {
    const Array* array = tensors_.find(name);
    return array == nullptr ? Doubles{} : to_doubles(*array);
  }

  /// Element (row, column) of a slot's state.
  std::size_t place(std::int64_t slot, std::int64_t head, std::int64_t row, std::int64_t column) {
    std::int64_t base = (slot * v_heads_ + head) * v_ * k_;
    bool vk = options_.state_layout == StateLayout::vk;
    return at(base + (vk ? row * k_ + column : column * v_ + row));
  }

  double log_decay(std::int64_t token, std::int64_t head, std::int64_t i) const {
    double a = a_[at((token * v_heads_ + head) * k_ + i)];
    if (a_log_.empty() && !options_.gate.lower_bound) return a;
    double bias = dt_bias_.empty() ? 0 : dt_bias_[at(head * k_ + i)];
    return kda::log_decay(a + bias, a_log_.empty() ? 0 : a_log_[at(head)], options_.gate);
  }

  void run_head(std::int64_t n, std::int64_t head, std::int64_t slot) {
    Doubles s(at(v_ * k_));
    for (std::int64_t row = 0; row < v_; ++row) {
      for (std::int64_t i = 0; i < k_; ++i)
        s[at(row * k_ + i)] = state[place(slot, head, row, i)];
    }
    double scale = options_.scale.value_or(1.0f / std::sqrt(static_cast<float>(k_)));
    for (std::int64_t t = 0; t < t_; ++t) {
      std::int64_t token = n * t_ + t, q_head = head / (v_heads_ / heads_);
      auto part = [&](const Doubles& from, std::int64_t index, std::int64_t count) {
        return std::span(from).subspan(at(index * count), at(count));
      };
      Doubles q = kda::reference_normalised(part(q_, token * heads_ + q_head, k_), scale, true);
      Doubles k = kda::reference_normalised(part(k_values_, token * heads_ + q_head, k_), 1, true);
      Doubles decay;
      for (std::int64_t i = 0; i < k_; ++i)
        decay.push_back(std::exp(log_decay(token, head, i)));
      std::int64_t of_head = token * v_heads_ + head;
      double beta = (options_.neg_eigval ? 2 : 1) / (1 + std::exp(-b_[at(of_head)]));
      kda::reference_delta_rule({q, k, part(v_values_, of_head, v_), decay, beta}, s,
                                std::span(out).subspan(at(of_head * v_), at(v_)));
      std::copy(s.begin(), s.end(),
                snapshots.begin() + static_cast<std::ptrdiff_t>(of_head * v_ * k_));
    }
    for (std::int64_t row = 0; row < v_ && options_.update_state; ++row) {
      for (std::int64_t i = 0; i < k_; ++i)
        state[place(slot, head, row, i)] = s[at(row * k_ + i)];
    }
  }

  const KdaDecodeOptions& options_;
  const HostTensors& tensors_;
  std::int64_t n_ = 0, t_ = 0, heads_ = 0, v_heads_ = 0, k_ = 0, v_ = 0;
  Doubles q_, k_values_, v_values_, a_, b_, a_log_, dt_bias_;
};

}  // namespace

void kda_decode_reference(const KdaDecodeOptions& options, const Arguments& arguments,
                          HostTensors& tensors) {
  Reference reference(options, tensors);
  reference.run();
  auto set = [&](const char* name, const Doubles& numbers) {
    const View* view = arguments.find(name);
    if (view == nullptr) return;
    tensors.set(
        make_array(name, f64, {view->shape.begin(), view->shape.begin() + view->rank}, numbers));
  };
  set("out", reference.out);
  set("state", reference.state);
  set("snapshots", reference.snapshots);
}

}  // namespace tilewright
