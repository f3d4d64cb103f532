// SPDX-License-Identifier: Apache-2.0
// Ranks, shapes, strides, types and numbers of kda_conv_verify's arguments.
#include "kernels/kda_conv_verify/checks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace tilewright {
namespace {

constexpr std::int64_t kMaxHeads = 1 << 16;

/// Sizes that every tensor is held against.
struct Sizes {
  std::int64_t n = 0, t = 0, heads = 0, v_heads = 0, k = 0, v = 0, d = 0;
};

class Checks {
 public:
  Checks(const KdaConvVerifyTensors& given, const KdaConvVerifyOptions& options,
         const rows::Caller& caller)
      : t_(given), options_(options), caller_(caller) {}

  KdaConvVerifyTensors run() {
    types();
    sizes();
    if (s_.n == 0 || s_.t == 0) return t_;  // nothing to launch
    reshape();
    shapes();
    strides();
    memory();
    numbers();
    return t_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { caller_.refuse(what); }

  void type_is(const View& view, const char* which, Type type) const {
    rows::check_type(view, which, type, caller_);
  }

  void types() const {
    type_is(t_.mixed_qkv, "mixed_qkv", bf16);
    type_is(t_.a, "a", bf16);
    type_is(t_.b, "b", bf16);
    type_is(t_.out, "out", bf16);
    type_is(t_.A_log, "A_log", f32);
    type_is(t_.dt_bias, "dt_bias", f32);
    type_is(t_.ssm_states, "ssm_states", f32);
    if (t_.intermediate_states_buffer)
      type_is(*t_.intermediate_states_buffer, "intermediate_states_buffer", f32);
    for (const auto& [view, which] : records())
      type_is(*view, which, f32);
    auto conv_type = [&](const View& view, const char* which) {
      if (view.type == f32 || view.type == bf16) return;
      fail(std::string(which) + " has type " + std::string(name(view.type)) +
           "; it must be f32 or bf16");
    };
    conv_type(t_.conv_weight, "conv_weight");
    if (t_.conv_bias) conv_type(*t_.conv_bias, "conv_bias");
    conv_type(t_.conv_state, "conv_state");
    if (t_.intermediate_conv_window)
      type_is(*t_.intermediate_conv_window, "intermediate_conv_window", t_.conv_state.type);
    for (const auto& [view, which] : indices()) {
      if (!rows::is_index_type(view->type)) {
        fail(std::string(which) + " has type " + std::string(name(view->type)) +
             "; it must be s32 or s64");
      }
    }
  }

  using Named = std::pair<const View*, const char*>;
  std::array<Named, 3> indices() const {
    return {Named{&t_.conv_state_indices, "conv_state_indices"},
            Named{&t_.intermediate_state_indices, "intermediate_state_indices"},
            Named{&t_.cache_indices, "cache_indices"}};
  }

  /// Those that are given.
  std::vector<Named> records() const {
    std::vector<Named> given;
    for (const auto& [view, which] :
         {std::pair{&t_.d_records, "d_records"}, std::pair{&t_.k_records, "k_records"},
          std::pair{&t_.decay_records, "decay_records"}}) {
      if (*view) given.emplace_back(&**view, which);
    }
    return given;
  }

  /// From the states, the indices and the packed rows.
  void sizes() {
    const View& states = t_.ssm_states;
    if (states.rank != 4)
      fail("ssm_states is " + to_string(states) + "; it must be [slots, HV, V, K]");
    s_.v_heads = states.shape[1];
    s_.v = states.shape[2];
    s_.k = states.shape[3];
    if ((s_.k != 64 && s_.k != 128) || s_.v % 32 != 0 || s_.v < 32) {
      fail("ssm_states is " + to_string(states) +
           "; K must be 64 or 128 and V a multiple of 32 for this kernel");
    }
    if (t_.cache_indices.rank != 1)
      fail("cache_indices is " + to_string(t_.cache_indices) + "; it must be [N]");
    s_.n = t_.cache_indices.shape[0];
    const View& mixed = t_.mixed_qkv;
    if (mixed.rank != 2) fail("mixed_qkv is " + to_string(mixed) + "; it must be [N T, D]");
    s_.d = mixed.shape[1];
    std::int64_t qk = s_.d - s_.v_heads * s_.v;
    s_.heads = qk / (2 * s_.k);
    bool heads_fit = s_.v_heads > 0 && qk > 0 && qk % (2 * s_.k) == 0 && s_.v_heads % s_.heads == 0;
    if (!heads_fit || s_.v_heads > kMaxHeads) {
      fail("mixed_qkv is " + to_string(mixed) + " and ssm_states " + to_string(states) +
           "; D must be 2 H K + HV V with HV a multiple of H, and both at least 1");
    }
    if (s_.n > 0 && mixed.shape[0] % s_.n != 0) {
      fail("mixed_qkv is " + to_string(mixed) + " for N = " + std::to_string(s_.n) +
           "; it must have N T rows");
    }
    s_.t = s_.n == 0 ? 0 : mixed.shape[0] / s_.n;
  }

  // ---- The ranks that the contract also allows ----

  /// [N, T, inner...] from a view whose rows or inner modes may be folded into one: [N T, HV K].
  void unfold(View& view, const char* which, const std::vector<std::int64_t>& inner) const {
    for (bool rows_fold : {false, true}) {
      for (bool inner_folds : {false, true}) {
        if (std::optional<View> found = unfolded(view, inner, rows_fold, inner_folds)) {
          view = *found;
          return;
        }
      }
    }
    std::string shape = std::to_string(s_.n) + "," + std::to_string(s_.t);
    for (std::int64_t extent : inner)
      shape += "," + std::to_string(extent);
    fail(std::string(which) + " is " + to_string(view) + "; it must be [" + shape + "]");
  }

  std::optional<View> unfolded(const View& view, const std::vector<std::int64_t>& inner,
                               bool rows_fold, bool inner_folds) const {
    std::vector<std::int64_t> given{s_.n, s_.t};
    if (rows_fold) given = {s_.n * s_.t};
    std::size_t lead = given.size();
    std::int64_t folded = 1;
    for (std::int64_t extent : inner)
      folded *= extent;
    if (inner_folds) given.push_back(folded);
    if (!inner_folds) given.insert(given.end(), inner.begin(), inner.end());
    bool same = view.rank == static_cast<int>(given.size()) &&
                std::equal(given.begin(), given.end(), view.shape.begin());
    if (!same) return std::nullopt;
    View out = view;
    out.rank = 2 + static_cast<int>(inner.size());
    out.shape[0] = s_.n;
    out.shape[1] = s_.t;
    out.stride[1] = view.stride[lead - 1];
    if (rows_fold) out.stride[0] = view.stride[0] * s_.t;
    std::int64_t step = view.stride[lead];
    for (std::size_t i = inner.size(); i-- > 0;) {
      out.shape[2 + i] = inner[i];
      out.stride[2 + i] = inner_folds ? step : view.stride[lead + i];
      step *= inner[i];
    }
    return out;
  }

  void flatten(View& view, const char* which, std::int64_t elems) const {
    if (size(view) != elems || !is_row_major(view)) {
      fail(std::string(which) + " is " + to_string(view) + "; it must have " +
           std::to_string(elems) + " contiguous elements");
    }
    view.rank = 1;
    view.shape = {elems};
    view.stride = {1};
  }

  void reshape() {
    unfold(t_.a, "a", {s_.v_heads, s_.k});
    unfold(t_.b, "b", {s_.v_heads});
    flatten(t_.A_log, "A_log", s_.v_heads);
    flatten(t_.dt_bias, "dt_bias", s_.v_heads * s_.k);
    t_.dt_bias.rank = 2;
    t_.dt_bias.shape = {s_.v_heads, s_.k};
    t_.dt_bias.stride = {s_.k, 1};
    if (t_.conv_bias) flatten(*t_.conv_bias, "conv_bias", s_.d);
  }

  /// -1 allows any extent.
  void shape_is(const View& view, const char* which,
                std::initializer_list<std::int64_t> shape) const {
    bool equal = view.rank == static_cast<int>(shape.size());
    std::size_t i = 0;
    for (std::int64_t extent : shape) {
      if (equal && extent >= 0 && view.shape[i] != extent) equal = false;
      ++i;
    }
    if (equal) return;
    std::string text;
    for (std::int64_t extent : shape)
      text += (text.empty() ? "" : ",") + (extent < 0 ? "any" : std::to_string(extent));
    fail(std::string(which) + " is " + to_string(view) + "; it must be [" + text + "]");
  }

  void shapes() const {
    shape_is(t_.conv_weight, "conv_weight", {s_.d, 4});
    shape_is(t_.conv_state, "conv_state", {-1, s_.d, 3});
    for (const auto& [view, which] : indices())
      shape_is(*view, which, {s_.n});
    shape_is(t_.out, "out", {s_.n, s_.t, s_.v_heads, s_.v});
    auto steps = [&](const View& view, const char* which) {
      if (view.shape[1] >= s_.t) return;
      fail(std::string(which) + " is " + to_string(view) +
           "; it must have at least T = " + std::to_string(s_.t) + " steps");
    };
    if (t_.d_records) shape_is(*t_.d_records, "d_records", {s_.n, s_.t, s_.v_heads, s_.v});
    if (t_.k_records) shape_is(*t_.k_records, "k_records", {s_.n, s_.t, s_.v_heads, s_.k});
    if (t_.decay_records)
      shape_is(*t_.decay_records, "decay_records", {s_.n, s_.t, s_.v_heads, s_.k});
    if (t_.intermediate_states_buffer) {
      const View& buffer = *t_.intermediate_states_buffer;
      shape_is(buffer, "intermediate_states_buffer", {-1, -1, s_.v_heads, s_.v, s_.k});
      steps(buffer, "intermediate_states_buffer");
      bool by_row = options_.snapshot_index_mode == SnapshotIndexMode::by_row;
      if (by_row && buffer.shape[0] < s_.n) {
        fail("intermediate_states_buffer is " + to_string(buffer) +
             "; it must have at least N = " + std::to_string(s_.n) + " rows");
      }
    }
    if (t_.intermediate_conv_window) {
      shape_is(*t_.intermediate_conv_window, "intermediate_conv_window", {-1, -1, s_.d, 3});
      steps(*t_.intermediate_conv_window, "intermediate_conv_window");
    }
  }

  /// The last two strides are those of taps or of channels next to each other.
  void conv_layout(const View& view, const char* which) const {
    auto channel = static_cast<std::size_t>(view.rank - 2);
    std::int64_t of_channel = view.stride[channel], of_tap = view.stride[channel + 1];
    bool fits = (of_channel == 3 && of_tap == 1) || (of_channel == 1 && of_tap == s_.d);
    if (!fits) {
      fail(std::string(which) + " is " + to_string(view) +
           "; its last strides must be 3, 1 (taps next to each other) or 1, D (channels)");
    }
  }

  void strides() const {
    auto last_is_one = [&](const View& view, const char* which) {
      if (view.stride[static_cast<std::size_t>(view.rank - 1)] != 1)
        fail(std::string(which) + " is " + to_string(view) + "; its last stride must be 1");
    };
    auto contiguous = [&](const View& view, const char* which) {
      if (!is_row_major(view))
        fail(std::string(which) + " is " + to_string(view) + "; it must be contiguous");
    };
    last_is_one(t_.mixed_qkv, "mixed_qkv");
    last_is_one(t_.conv_weight, "conv_weight");
    last_is_one(t_.a, "a");
    contiguous(t_.ssm_states, "ssm_states");
    contiguous(t_.out, "out");
    for (const auto& [view, which] : records())
      contiguous(*view, which);
    conv_layout(t_.conv_state, "conv_state");
    if (t_.intermediate_states_buffer)
      contiguous(*t_.intermediate_states_buffer, "intermediate_states_buffer");
    if (t_.intermediate_conv_window)
      conv_layout(*t_.intermediate_conv_window, "intermediate_conv_window");
  }

  void memory() const {
    auto apart_from_all = [&](const View& written, const char* name) {
      auto apart = [&](const View& other, const char* which) {
        if (&other != &written) rows::check_apart(other, which, written, name, caller_);
      };
      apart(t_.mixed_qkv, "mixed_qkv");
      apart(t_.conv_weight, "conv_weight");
      if (t_.conv_bias) apart(*t_.conv_bias, "conv_bias");
      apart(t_.conv_state, "conv_state");
      for (const auto& [view, which] : indices())
        apart(*view, which);
      apart(t_.a, "a");
      apart(t_.b, "b");
      apart(t_.A_log, "A_log");
      apart(t_.dt_bias, "dt_bias");
      apart(t_.ssm_states, "ssm_states");
      apart(t_.out, "out");
      if (t_.intermediate_states_buffer)
        apart(*t_.intermediate_states_buffer, "intermediate_states_buffer");
    };
    for (const auto& [view, which] : records())
      apart_from_all(*view, which);
    apart_from_all(t_.out, "out");
    apart_from_all(t_.conv_state, "conv_state");
    if (t_.intermediate_states_buffer)
      apart_from_all(*t_.intermediate_states_buffer, "intermediate_states_buffer");
    if (t_.intermediate_conv_window)
      apart_from_all(*t_.intermediate_conv_window, "intermediate_conv_window");
  }

  void numbers() const {
    auto finite = [&](float value, const char* which) {
      if (!std::isfinite(value))
        fail(std::string(which) + "=" + std::to_string(value) + "; it must be finite");
    };
    if (options_.scale) finite(*options_.scale, "scale");
    if (options_.gate.lower_bound) finite(*options_.gate.lower_bound, "lower_bound");
    finite(options_.gate.softplus_beta, "softplus_beta");
    finite(options_.gate.softplus_threshold, "softplus_threshold");
    if (options_.gate.softplus_beta <= 0) {
      fail("softplus_beta=" + std::to_string(options_.gate.softplus_beta) +
           "; it must be greater than 0");
    }
  }

  KdaConvVerifyTensors t_;
  const KdaConvVerifyOptions& options_;
  const rows::Caller& caller_;
  Sizes s_;
};

}  // namespace

KdaConvVerifyTensors checked_kda_conv_verify(const KdaConvVerifyTensors& tensors,
                                             const KdaConvVerifyOptions& options,
                                             const rows::Caller& caller) {
  return Checks(tensors, options, caller).run();
}

}  // namespace tilewright
