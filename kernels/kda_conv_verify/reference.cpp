// SPDX-License-Identifier: Apache-2.0
// kda_conv_verify in float64, head by head and token by token.
#include "kernels/kda_conv_verify/reference.h"

#include "kernels/kda/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright {
namespace {

using Doubles = std::vector<double>;

constexpr double kUntouched = std::numeric_limits<double>::quiet_NaN();

class Reference {
 public:
  Reference(const KdaConvVerifyOptions& options, const Arguments& arguments, HostTensors& tensors)
      : options_(options), arguments_(arguments), tensors_(tensors) {
    const Array& states = tensors.at("ssm_states");
    n_ = tensors.at("cache_indices").shape[0];
    v_heads_ = states.shape[1];
    v_ = states.shape[2];
    k_ = states.shape[3];
    const Array& mixed = tensors.at("mixed_qkv");
    d_ = mixed.shape[1];
    t_ = n_ == 0 ? 0 : mixed.shape[0] / n_;
    heads_ = (d_ - v_heads_ * v_) / (2 * k_);
  }

  void run() {
    read();
    for (std::int64_t n = 0; n < n_; ++n) {
      if (slots_[at(n)] < 0 || conv_lines_[at(n)] < 0) continue;
      convolve_row(n);
      for (std::int64_t head = 0; head < v_heads_; ++head)
        run_head(n, head);
      roll(n);
    }
    write();
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  /// Null also where the operator has no such tensor.
  const View* view_of(std::string_view name) const {
    for (const TensorSpec& spec : arguments_.schema().tensors) {
      if (spec.name == name) return arguments_.find(name);
    }
    return nullptr;
  }
  Doubles values(const char* name) const {
    const Array* array = tensors_.find(name);
    return array == nullptr ? Doubles{} : to_doubles(*array);
  }
  /// What an output held before, or untouched elements.
  Doubles initial(const char* name) const {
    if (tensors_.find(name) != nullptr) return values(name);
    const View* view = view_of(name);
    return view == nullptr ? Doubles{} : Doubles(at(size(*view)), kUntouched);
  }

  void read() {
    mixed_ = values("mixed_qkv");
    weight_ = values("conv_weight");
    bias_ = values("conv_bias");
    conv_state_ = values("conv_state");
    a_ = values("a");
    b_ = values("b");
    a_log_ = values("A_log");
    dt_bias_ = values("dt_bias");
    states_ = values("ssm_states");
    slots_ = values("cache_indices");
    conv_lines_ = values("conv_state_indices");
    snapshot_lines_ = values("intermediate_state_indices");
    out_ = initial("out");
    snapshots_ = initial("intermediate_states_buffer");
    windows_ = initial("intermediate_conv_window");
    d_records_ = initial("d_records");
    k_records_ = initial("k_records");
    decay_records_ = initial("decay_records");
  }

  /// x[t] of a channel, from conv_state before the first token.
  double input(std::int64_t n, std::int64_t channel, std::int64_t t) const {
    if (t >= 0) return mixed_[at((n * t_ + t) * d_ + channel)];
    auto line = static_cast<std::int64_t>(conv_lines_[at(n)]);
    return conv_state_[at((line * d_ + channel) * 3 + t + 3)];
  }

  void convolve_row(std::int64_t n) {
    y_.assign(at(t_ * d_), 0);
    for (std::int64_t t = 0; t < t_; ++t) {
      for (std::int64_t c = 0; c < d_; ++c) {
        double z = bias_.empty() ? 0 : bias_[at(c)];
        for (std::int64_t tap = 0; tap < 4; ++tap)
          z += weight_[at(c * 4 + tap)] * input(n, c, t - 3 + tap);
        y_[at(t * d_ + c)] = decode(bf16, encode(bf16, z / (1 + std::exp(-z))));
        store_window(n, t, c);
      }
    }
  }

  void store_window(std::int64_t n, std::int64_t t, std::int64_t c) {
    auto line = static_cast<std::int64_t>(snapshot_lines_[at(n)]);
    const View* windows = view_of("intermediate_conv_window");
    if (windows == nullptr || line < 0 || line >= windows->shape[0]) return;
    for (std::int64_t i = 0; i < 3; ++i)
      windows_[at(((line * windows->shape[1] + t) * d_ + c) * 3 + i)] = input(n, c, t - 2 + i);
  }

  Doubles channels(std::int64_t t, std::int64_t first, std::int64_t count) const {
    auto begin = y_.begin() + (t * d_ + first);
    return {begin, begin + count};
  }

  void run_head(std::int64_t n, std::int64_t head) {
    auto slot = static_cast<std::int64_t>(slots_[at(n)]);
    std::int64_t elems = v_ * k_, q_head = head / (v_heads_ / heads_);
    auto first = states_.begin() + (slot * v_heads_ + head) * elems;
    Doubles state(first, first + elems);
    double scale = options_.scale.value_or(1.0f / std::sqrt(static_cast<float>(k_)));
    for (std::int64_t t = 0; t < t_; ++t) {
      bool norm = options_.use_qk_l2norm;
      Doubles q = kda::reference_normalised(channels(t, q_head * k_, k_), scale, norm);
      Doubles k = kda::reference_normalised(channels(t, (heads_ + q_head) * k_, k_), 1, norm);
      Doubles v = channels(t, 2 * heads_ * k_ + head * v_, v_);
      Doubles decay;
      std::int64_t token = (n * t_ + t) * v_heads_ + head;
      for (std::int64_t i = 0; i < k_; ++i) {
        double u = a_[at(token * k_ + i)] + dt_bias_[at(head * k_ + i)];
        decay.push_back(std::exp(kda::log_decay(u, a_log_[at(head)], options_.gate)));
      }
      double beta = 1 / (1 + std::exp(-b_[at(token)]));
      std::span<double> out = std::span(out_).subspan(at(token * v_), at(v_));
      Doubles correction(at(v_));
      kda::reference_delta_rule({q, k, v, decay, beta}, state, out, correction);
      store_state(n, t, head, state);
      store_record(d_records_, token * v_, correction);
      store_record(k_records_, token * k_, k);
      store_record(decay_records_, token * k_, decay);
    }
  }

  static void store_record(Doubles& records, std::int64_t place, const Doubles& record) {
    if (!records.empty()) std::copy(record.begin(), record.end(), records.begin() + place);
  }

  void store_state(std::int64_t n, std::int64_t t, std::int64_t head, const Doubles& state) {
    const View* buffer = view_of("intermediate_states_buffer");
    bool by_row = options_.snapshot_index_mode == SnapshotIndexMode::by_row;
    auto line = by_row ? n : static_cast<std::int64_t>(snapshot_lines_[at(n)]);
    if (buffer == nullptr || line < 0 || line >= buffer->shape[0]) return;
    std::int64_t place = ((line * buffer->shape[1] + t) * v_heads_ + head) * v_ * k_;
    std::copy(state.begin(), state.end(), snapshots_.begin() + place);
  }

  void roll(std::int64_t n) {
    if (options_.conv_state_mode == ConvStateMode::keep) return;
    auto line = static_cast<std::int64_t>(conv_lines_[at(n)]);
    for (std::int64_t c = 0; c < d_; ++c) {
      double rolled[3];
      for (std::int64_t i = 0; i < 3; ++i)
        rolled[i] = input(n, c, t_ - 3 + i);
      std::copy(rolled, rolled + 3, conv_state_.begin() + (line * d_ + c) * 3);
    }
  }

  void write() {
    auto set = [&](const char* name, Type type, const Doubles& numbers) {
      const View* view = view_of(name);
      if (view == nullptr) return;
      std::vector<std::int64_t> shape(view->shape.begin(), view->shape.begin() + view->rank);
      tensors_.set(make_array(name, type, shape, numbers));
    };
    set("out", f64, out_);
    set("intermediate_states_buffer", f64, snapshots_);
    set("intermediate_conv_window", f64, windows_);
    set("conv_state", f64, conv_state_);
    set("d_records", f64, d_records_);
    set("k_records", f64, k_records_);
    set("decay_records", f64, decay_records_);
  }

  const KdaConvVerifyOptions& options_;
  const Arguments& arguments_;
  HostTensors& tensors_;
  std::int64_t n_ = 0, t_ = 0, heads_ = 0, v_heads_ = 0, k_ = 0, v_ = 0, d_ = 0;
  Doubles mixed_, weight_, bias_, conv_state_, a_, b_, a_log_, dt_bias_, states_;
  Doubles slots_, conv_lines_, snapshot_lines_;
  Doubles out_, snapshots_, windows_;
  Doubles d_records_, k_records_, decay_records_;
  Doubles y_;  // [T, D]: the activated channels of a row
};

}  // namespace

void kda_conv_verify_reference(const KdaConvVerifyOptions& options, const Arguments& arguments,
                               HostTensors& tensors) {
  Reference(options, arguments, tensors).run();
}

}  // namespace tilewright
