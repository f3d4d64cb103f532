// SPDX-License-Identifier: Apache-2.0
// What tests of kda_conv_verify share: inputs, tensors in memory as a test wants them, comparison.
#pragma once

#include "kernels/kda_conv_verify/kda_conv_verify.h"
#include "operator_fixture.h"
#include "tilewright/graph.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tilewright::test {

struct Sizes {
  std::int64_t n = 2, t = 2, h = 1, hv = 1, k = 128, v = 128;
  std::int64_t lines = 0;  ///< of every pool; 0: n
  std::int64_t d() const { return 2 * h * k + hv * v; }
  std::int64_t pool() const { return lines == 0 ? n : lines; }
};

/// The two laws of the contract: small numbers, and those that overflow a careless softplus.
enum class Law { mild, hard };

class KdaConvVerifyTest : public OperatorTest {
 protected:
  static std::vector<Array> inputs(const Sizes& s, std::uint64_t seed = 1, Law law = Law::mild) {
    bool hard = law == Law::hard;
    std::vector<Array> all{
        random("mixed_qkv", bf16, {s.n * s.t, s.d()}, 0.5, seed),
        random("conv_weight", f32, {s.d(), 4}, 0.3, seed + 1),
        random("conv_bias", f32, {s.d()}, 0.1, seed + 2),
        random("conv_state", f32, {s.pool(), s.d(), 3}, 0.3, seed + 3),
        random("a", bf16, {s.n, s.t, s.hv, s.k}, hard ? 60 : 0.5, seed + 4),
        random("b", bf16, {s.n, s.t, s.hv}, 0.5, seed + 5),
        random("dt_bias", f32, {s.hv, s.k}, 0.1, seed + 6),
        random("ssm_states", f32, {s.pool(), s.hv, s.v, s.k}, hard ? 1 : 0.01, seed + 7)};
    std::vector<double> a_log;
    for (std::int64_t i = 0; i < s.hv; ++i) {
      double part = static_cast<double>((i * 5 + static_cast<std::int64_t>(seed)) % 8) / 8;
      a_log.push_back(hard ? 6 * part - 4 : -2 * part);
    }
    all.push_back(make_array("A_log", f32, {s.hv}, a_log));
    std::vector<double> identity;
    for (std::int64_t i = 0; i < s.n; ++i)
      identity.push_back(static_cast<double>(i));
    for (const char* name : {"conv_state_indices", "intermediate_state_indices", "cache_indices"})
      all.push_back(make_array(name, s32, {s.n}, identity));
    return all;
  }
  static void set_indices(std::vector<Array>& all, std::vector<double> conv,
                          std::vector<double> snapshots, std::vector<double> cache) {
    auto n = static_cast<std::int64_t>(conv.size());
    named(all, "conv_state_indices") = make_array("conv_state_indices", s32, {n}, conv);
    named(all, "intermediate_state_indices") =
        make_array("intermediate_state_indices", s64, {n}, snapshots);
    named(all, "cache_indices") = make_array("cache_indices", s32, {n}, cache);
  }

  /// How tensors lie in memory, and which are there.
  struct Layout {
    bool channels_contiguous = false;  ///< of conv_state and the windows
    std::int64_t index_stride = 1;     ///< what lies between is -1
    std::int64_t row_padding = 0;      ///< elements between rows of mixed_qkv and b
    std::int64_t spare_steps = 0;      ///< of the snapshots
    bool snapshots = true;
    std::optional<KdaTiling> tiling = {};  ///< instead of the variant's own
    bool short_pools = false;  ///< with `tiling`: pools seem to end in front of what indices name
  };

  /// Runs, compares with the reference, and checks that what it leaves alone was not written.
  /// Returns the outputs, conv_state last.
  std::vector<Array> run(const std::vector<Array>& given, const Options& options,
                         const Layout& layout) {
    Arguments arguments(op.schema);
    HostTensors reference;
    placed_.clear();
    for (const auto& [name, value] : options)
      arguments.set_option(name, value);
    for (const Array& array : given) {
      arguments.set(array.name, put(array, strides_of(array.name, array.shape, layout)));
      reference.set(array);
    }
    std::vector<std::string> written;
    for (OutputSpec& spec : op.outputs(arguments)) {
      if (spec.name != "out" && !layout.snapshots) continue;
      if (spec.name != "out") spec.shape[1] += layout.spare_steps;
      written.emplace_back(spec.name);
      Array untouched = make_array(written.back(), spec.type, spec.shape);
      std::fill(untouched.bytes.begin(), untouched.bytes.end(), kUntouched);
      arguments.set(spec.name, put(untouched, strides_of(spec.name, spec.shape, layout)));
    }
    if (layout.tiling) {
      launch_with(*layout.tiling, arguments, layout.short_pools);
    } else {
      op.launch(device, stream, arguments);
    }
    stream.synchronize();
    last_.emplace(arguments);
    written.emplace_back("conv_state");
    op.reference(arguments, reference);
    std::vector<Array> outputs;
    for (const std::string& name : written) {
      outputs.push_back(get(name, arguments.tensor(name)));
      check(arguments, outputs.back(), reference.at(name));
    }
    return outputs;
  }

  void launch_with(const KdaTiling& tiling, const Arguments& given, bool short_pools) {
    KdaConvVerifyTensors tensors{
        .mixed_qkv = given.tensor("mixed_qkv"),
        .conv_weight = given.tensor("conv_weight"),
        .conv_bias = given.tensor("conv_bias"),
        .conv_state = given.tensor("conv_state"),
        .conv_state_indices = given.tensor("conv_state_indices"),
        .intermediate_state_indices = given.tensor("intermediate_state_indices"),
        .a = given.tensor("a"),
        .b = given.tensor("b"),
        .A_log = given.tensor("A_log"),
        .dt_bias = given.tensor("dt_bias"),
        .ssm_states = given.tensor("ssm_states"),
        .cache_indices = given.tensor("cache_indices"),
        .out = given.tensor("out"),
        .intermediate_states_buffer = given.tensor("intermediate_states_buffer"),
        .intermediate_conv_window = given.tensor("intermediate_conv_window")};
    if (short_pools) tensors.conv_state.shape[0] = tensors.ssm_states.shape[0] = 1;
    KdaConvVerifyPlan plan = plan_kda_conv_verify(device.properties(), tensors, {}, tiling);
    rows::prepare(device, plan, SourceLoc::here()).launch(stream);
  }

  /// What both variants wrote; the same bits.
  std::vector<Array> run_both(const std::vector<Array>& given, const Options& options,
                              const Layout& layout) {
    std::vector<Array> first;
    for (const char* variant : {"large_batch", "small_batch"}) {
      Options with = options;
      with.emplace_back("variant", variant);
      std::vector<Array> outputs = run(given, with, layout);
      if (first.empty()) first = outputs;
      for (std::size_t i = 0; i < outputs.size(); ++i)
        EXPECT_EQ(outputs[i].bytes, first[i].bytes) << variant << ": " << outputs[i].name;
    }
    return first;
  }
  std::vector<Array> run_both(const std::vector<Array>& given, const Options& options) {
    return run_both(given, options, {});
  }

  /// Repeats the last run as a graph, from the same conv_state, on another stream.
  std::vector<Array> replay(const std::vector<Array>& given, int times) {
    const Array& state = *std::find_if(given.begin(), given.end(),
                                       [](const Array& each) { return each.name == "conv_state"; });
    Buffer initial = upload(device, std::span<const std::byte>(state.bytes));
    const View& pool = last_->tensor("conv_state");
    Graph graph = Graph::capture(stream, [&] {
      copy_on_device(pool.address, initial.address(), initial.size_bytes(), stream);
      op.launch(device, stream, *last_);
    });
    for (auto& [name, memory] : placed_) {
      if (name == "out" || name.starts_with("intermediate_states_b")) memory.fill(kUntouched);
    }
    Stream other(device);
    for (int i = 0; i < times; ++i)
      graph.launch(other);
    other.synchronize();
    std::vector<Array> outputs;
    for (const char* name :
         {"out", "intermediate_states_buffer", "intermediate_conv_window", "conv_state"})
      outputs.push_back(get(name, last_->tensor(name)));
    return outputs;
  }

  static const Array& output(const std::vector<Array>& outputs, std::string_view name) {
    return *std::find_if(outputs.begin(), outputs.end(),
                         [&](const Array& each) { return each.name == name; });
  }

  const Operator& op = kda_conv_verify_operator();
  const Options safe{{"lower_bound", "-5"}};

 private:
  static constexpr std::byte kUntouched{0xff};  // NaN, and the index -1

  static std::vector<std::int64_t> strides_of(std::string_view name,
                                              const std::vector<std::int64_t>& shape,
                                              const Layout& layout) {
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t i = shape.size(); i-- > 1;) {
      std::int64_t padding =
          i == 1 && (name == "mixed_qkv" || name == "b") ? layout.row_padding : 0;
      strides[i - 1] = strides[i] * shape[i] + padding;
    }
    if (name.ends_with("_indices")) strides[0] = layout.index_stride;
    bool pool = name == "conv_state" || name == "intermediate_conv_window";
    if (pool && layout.channels_contiguous) {
      strides[shape.size() - 2] = 1;
      strides[shape.size() - 1] = shape[shape.size() - 2];
    }
    return strides;
  }

  /// Calls function(place in the array, place in memory) for every element.
  template <class F>
  static void for_elements(std::span<const std::int64_t> shape,
                           std::span<const std::int64_t> strides, F&& function) {
    std::int64_t count = element_count(shape);
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t rest = i, place = 0;
      for (std::size_t mode = shape.size(); mode-- > 0;) {
        place += rest % shape[mode] * strides[mode];
        rest /= shape[mode];
      }
      function(static_cast<std::size_t>(i), static_cast<std::size_t>(place));
    }
  }

  View put(const Array& array, const std::vector<std::int64_t>& strides) {
    auto size = static_cast<std::size_t>(bytes(array.type));
    std::size_t last = 0;
    for_elements(array.shape, strides,
                 [&](std::size_t, std::size_t to) { last = std::max(last, to); });
    std::vector<std::byte> memory((last + 1) * size, kUntouched);
    for_elements(array.shape, strides, [&](std::size_t from, std::size_t to) {
      std::copy_n(array.bytes.data() + from * size, size, memory.data() + to * size);
    });
    placed_.emplace_back(array.name, Buffer(device, static_cast<std::int64_t>(memory.size())));
    placed_.back().second.upload(memory);
    return make_view(placed_.back().second.address(), array.type, array.shape, strides);
  }

  Array get(const std::string& name, const View& view) {
    auto rank = static_cast<std::size_t>(view.rank);
    Array array = make_array(name, view.type, {view.shape.begin(), view.shape.begin() + view.rank});
    auto at = std::find_if(placed_.begin(), placed_.end(),
                           [&](const auto& each) { return each.first == name; });
    std::vector<std::byte> memory = download<std::byte>(at->second);
    auto size = static_cast<std::size_t>(bytes(view.type));
    for_elements(array.shape, std::span(view.stride).first(rank),
                 [&](std::size_t to, std::size_t from) {
                   std::copy_n(memory.data() + from * size, size, array.bytes.data() + to * size);
                 });
    return array;
  }

  void check(const Arguments& arguments, const Array& out, const Array& reference) const {
    Comparison result = compare(out, reference, op.tolerance(arguments, out.name), NanRule::skip);
    EXPECT_EQ(result.wrong, 0) << out.name << ": element " << result.first_wrong << " is "
                               << result.out << ", reference " << result.reference << ", "
                               << result.worst_ratio << " of the bound " << result.bound;
    std::vector<double> values = to_doubles(reference);
    auto size = static_cast<std::size_t>(bytes(out.type));
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto begin = out.bytes.begin() + static_cast<std::ptrdiff_t>(i * size);
      bool untouched = std::all_of(begin, begin + static_cast<std::ptrdiff_t>(size),
                                   [](std::byte each) { return each == kUntouched; });
      ASSERT_EQ(std::isnan(values[i]), untouched) << out.name << ": element " << i;
    }
  }

  std::vector<std::pair<std::string, Buffer>> placed_;
  std::optional<Arguments> last_;  // of the last run
};

}  // namespace tilewright::test
