// SPDX-License-Identifier: Apache-2.0
// kda_conv_verify against its float64 reference: both variants, shapes, indices, layouts, traps.
#include "kernels/kda_conv_verify/kda_conv_verify.h"
#include "kernels/kda_conv_verify/reference.h"
#include "operator_fixture.h"
#include "tilewright/case_file.h"
#include "tilewright/graph.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Options;

struct Sizes {
  std::int64_t n = 2, t = 2, h = 1, hv = 1, k = 128, v = 128;
  std::int64_t lines = 0;  ///< of every pool; 0: n
  std::int64_t d() const { return 2 * h * k + hv * v; }
  std::int64_t pool() const { return lines == 0 ? n : lines; }
};

/// The two laws of the contract: small numbers, and those that overflow a careless softplus.
enum class Law { mild, hard };

class KdaConvVerify : public OperatorTest {
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
  static Array& named(std::vector<Array>& all, std::string_view name) {
    return *std::find_if(all.begin(), all.end(), [&](const Array& a) { return a.name == name; });
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
      launch_with(*layout.tiling, arguments);
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

  void launch_with(const KdaTiling& tiling, const Arguments& given) {
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
    KdaConvVerifyPlan plan = plan_kda_conv_verify(tensors, {}, tiling);
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

TEST_F(KdaConvVerify, TakesAnyNumberOfTokens) {
  for (std::int64_t t : {1, 3, 4, 7, 8, 18})
    run_both(inputs({.n = 1, .t = t}, static_cast<std::uint64_t>(t)), safe);
}

TEST_F(KdaConvVerify, TakesGroupsOfValueHeads) {
  for (Sizes s : {Sizes{.n = 1, .t = 2, .h = 2, .hv = 4},
                  {.n = 1, .t = 3, .h = 1, .hv = 8},
                  {.n = 2, .t = 1, .h = 1, .hv = 3},
                  {.n = 1, .t = 9, .h = 1, .hv = 4}})
    run_both(inputs(s), safe);
}

TEST_F(KdaConvVerify, TakesOtherHeadSizes) {
  for (Sizes s : {Sizes{.k = 64, .v = 64},
                  {.k = 64, .v = 32},
                  {.k = 128, .v = 96},
                  {.n = 1, .t = 4, .hv = 2, .k = 64, .v = 160}})
    run_both(inputs(s), safe);
}

TEST_F(KdaConvVerify, HasBothGates) {
  run_both(inputs({.t = 4}, 3), {});
  run_both(inputs({.t = 4}, 4), {{"softplus_beta", "2"}, {"softplus_threshold", "10"}});
  run_both(inputs({.t = 4}, 5), {{"lower_bound", "0"}});  // a bound like any other: no decay
}

TEST_F(KdaConvVerify, StaysFiniteWhereSoftplusOverflows) {
  for (const Options& options : {Options{}, safe}) {
    std::vector<Array> outputs = run_both(inputs({.t = 4}, 6, Law::hard), options);
    for (double each : to_doubles(outputs[1]))
      ASSERT_TRUE(std::isfinite(each));
  }
}

TEST_F(KdaConvVerify, RunsWithoutBiasNormAndSnapshots) {
  std::vector<Array> given = inputs({.t = 2});
  std::erase_if(given, [](const Array& each) { return each.name == "conv_bias"; });
  run_both(given, {{"use_qk_l2norm", "false"}, {"scale", "0.5"}}, {.snapshots = false});
}

TEST_F(KdaConvVerify, KeepsTheConvolutionStateIfAsked) {
  std::vector<Array> given = inputs({.t = 2});
  Options options = safe;
  options.emplace_back("conv_state_mode", "keep");
  EXPECT_EQ(run_both(given, options).back().bytes, named(given, "conv_state").bytes);
}

TEST_F(KdaConvVerify, TakesIndependentStridedIndices) {
  std::vector<Array> given = inputs({.n = 4, .t = 2, .lines = 7});
  set_indices(given, {4, 0, 6, 2}, {1, 3, 0, 5}, {5, 5, 2, 0});  // a slot may serve two rows
  run_both(given, safe, {.index_stride = 3});
  Options by_index = safe;
  by_index.emplace_back("snapshot_index_mode", "by_index");
  run_both(given, by_index, {.index_stride = 3});
}

TEST_F(KdaConvVerify, LeavesPaddingRowsUntouched) {
  std::vector<Array> given = inputs({.n = 3, .t = 2, .lines = 4});
  for (auto [conv, cache] : std::vector<std::pair<std::vector<double>, std::vector<double>>>{
           {{-1, 0, 1}, {0, 1, 2}},
           {{2, 1, 0}, {3, -1, 1}},
           {{0, 1, -1}, {0, 1, -1}},
           {{-1, -1, -1}, {-1, -1, -1}}}) {
    set_indices(given, conv, {2, 0, 1}, cache);
    run_both(given, safe);
  }
}

TEST_F(KdaConvVerify, SkipsSnapshotsOfNegativeLines) {
  std::vector<Array> given = inputs({.n = 3, .t = 2});
  set_indices(given, {0, 1, 2}, {-1, 0, -2}, {0, 1, 2});
  for (const char* mode : {"by_row", "by_index"})
    run_both(given, {{"snapshot_index_mode", mode}});
}

TEST_F(KdaConvVerify, TakesBothLayoutsOfTheConvolutionState) {
  for (std::int64_t t : {1, 2, 4}) {
    std::vector<Array> given = inputs({.t = t, .hv = 2});
    std::vector<Array> taps = run_both(given, safe, {.spare_steps = 2});
    std::vector<Array> channels =
        run_both(given, safe, {.channels_contiguous = true, .spare_steps = 2});
    for (std::size_t i = 0; i < taps.size(); ++i)
      EXPECT_EQ(taps[i].bytes, channels[i].bytes) << taps[i].name;
  }
}

TEST_F(KdaConvVerify, TakesRowsApart) { run_both(inputs({.t = 4}), safe, {.row_padding = 9}); }

TEST_F(KdaConvVerify, TakesConvolutionTensorsInBf16) {
  std::vector<Array> given = inputs({.t = 4});
  for (const char* name : {"conv_weight", "conv_bias", "conv_state"}) {
    Array& array = named(given, name);
    array = make_array(name, bf16, array.shape, to_doubles(array));
  }
  run_both(given, safe);
}

TEST_F(KdaConvVerify, FollowsTheContractsExample) {
  CaseFile contents =
      read_case_file(TILEWRIGHT_SOURCE_DIR "/test/data/kda/f01_safe_h1_t1_n1.safetensors");
  std::vector<Array> outputs = run_both(contents.inputs, contents.attrs);
  for (const Array& expected : contents.expected) {
    auto same = [&](const Array& each) { return each.name == expected.name; };
    auto out = std::find_if(outputs.begin(), outputs.end(), same);
    if (out == outputs.end()) continue;  // intermediate values
    Tolerance tolerance = op.tolerance(Arguments(op.schema), expected.name);
    EXPECT_EQ(compare(*out, expected, tolerance, NanRule::skip).wrong, 0) << expected.name;
  }
}

TEST_F(KdaConvVerify, ContinuesFromTheRolledState) {
  std::vector<Array> given = inputs({.n = 2, .t = 3});
  for (std::uint64_t call = 0; call < 3; ++call) {
    std::vector<Array> outputs = run_both(given, safe);
    Array rolled = outputs.back();
    named(given, "conv_state") = rolled;
    named(given, "mixed_qkv") = random("mixed_qkv", bf16, {6, 384}, 0.5, 90 + call);
  }
}

TEST_F(KdaConvVerify, GivesTheSameBitsWhenAGraphIsReplayed) {
  std::vector<Array> given = inputs({.n = 2, .t = 3});
  for (const char* variant : {"large_batch", "small_batch"}) {
    std::vector<Array> first = run(given, {{"variant", variant}}, {});
    for (const Array& again : replay(given, 2))
      EXPECT_EQ(again.bytes, output(first, again.name).bytes) << variant << ": " << again.name;
  }
}

TEST_F(KdaConvVerify, ContinuesFromAnyAcceptedToken) {
  constexpr std::int64_t kTokens = 4, kAccepted = 2;
  Sizes sizes{.n = 1, .t = kTokens};
  std::vector<Array> given = inputs(sizes);
  std::vector<Array> draft = run_both(given, safe);
  auto token = [](const Array& all, std::int64_t at, std::vector<std::int64_t> shape) {
    std::size_t size = all.bytes.size() / static_cast<std::size_t>(kTokens);
    Array one = make_array(all.name, all.type, std::move(shape));
    one.bytes.assign(all.bytes.begin() + at * static_cast<std::ptrdiff_t>(size),
                     all.bytes.begin() + (at + 1) * static_cast<std::ptrdiff_t>(size));
    return one;
  };
  const Array& states = output(draft, "intermediate_states_buffer");
  const Array& windows = output(draft, "intermediate_conv_window");
  std::vector<Array> next = given;
  named(next, "mixed_qkv") = token(named(given, "mixed_qkv"), kAccepted, {1, sizes.d()});
  named(next, "a") = token(named(given, "a"), kAccepted, {1, 1, 1, sizes.k});
  named(next, "b") = token(named(given, "b"), kAccepted, {1, 1, 1});
  Array state = token(states, kAccepted - 1, {1, 1, sizes.v, sizes.k});
  Array window = token(windows, kAccepted - 1, {1, sizes.d(), 3});
  state.name = "ssm_states", window.name = "conv_state";
  named(next, "ssm_states") = state;
  named(next, "conv_state") = window;
  std::vector<Array> one = run_both(next, safe);
  EXPECT_EQ(output(one, "out").bytes,
            token(output(draft, "out"), kAccepted, {1, 1, 1, sizes.v}).bytes);
  EXPECT_EQ(output(one, "intermediate_states_buffer").bytes,
            token(states, kAccepted, {1, 1, 1, sizes.v, sizes.k}).bytes);
}

TEST_F(KdaConvVerify, HasNoBankConflicts) {
  if (!emulated()) GTEST_SKIP() << "the emulator counts wavefronts";
  emu::Options options;
  options.counters = emu::Counting::on;
  device.set_options(options);
  for (const char* variant : {"large_batch", "small_batch"}) {
    for (bool channels : {false, true}) {
      run(inputs({.n = 1, .t = 4}), {{"variant", variant}}, {.channels_contiguous = channels});
      std::uint64_t shared = 0;
      for (const auto& instruction : device.last_report().counters.instructions) {
        shared += instruction.ideal_wavefronts;
        EXPECT_EQ(instruction.wavefronts, instruction.ideal_wavefronts)
            << variant << ": PTX line " << instruction.ptx_line;
      }
      EXPECT_GT(shared, 0U);
    }
  }
}

TEST_F(KdaConvVerify, GivesTheSameBitsForAnyOrderOfBlocks) {
  if (!emulated()) GTEST_SKIP() << "the emulator chooses the order of blocks";
  std::vector<Array> given = inputs({.n = 5, .t = 2, .h = 1, .hv = 2});
  std::vector<Array> first = run_both(given, safe);
  for (std::uint64_t seed : {1U, 2U, 3U}) {
    emu::Options options;
    options.seed = seed;
    device.set_options(options);
    std::vector<Array> again = run_both(given, safe);
    for (std::size_t i = 0; i < first.size(); ++i)
      EXPECT_EQ(again[i].bytes, first[i].bytes) << first[i].name << ", seed " << seed;
  }
}

TEST_F(KdaConvVerify, GivesTheSameBitsForEveryTiling) {
  std::vector<Array> given = inputs({.n = 1, .t = 3, .h = 1, .hv = 2});
  std::vector<Array> first = run_both(given, {});
  using enum KdaVariant;
  for (const KdaTiling& tiling :
       {KdaTiling{small_batch, 2, 8, 2, 16, 1, false}, KdaTiling{large_batch, 8, 8, 1, 16, 1, true},
        KdaTiling{large_batch, 8, 16, 1, 8, 1, true}, KdaTiling{large_batch, 8, 64, 1, 2, 4, false},
        KdaTiling{large_batch, 8, 128, 2, 1, 3, false}}) {
    std::vector<Array> outputs = run(given, {}, {.tiling = tiling});
    for (std::size_t i = 0; i < first.size(); ++i)
      EXPECT_EQ(outputs[i].bytes, first[i].bytes) << to_string(tiling) << ": " << first[i].name;
  }
}

TEST_F(KdaConvVerify, KeepsRecordsInsteadOfSnapshots) {
  const Operator& compact = kda_verify_compact_operator();
  for (Sizes s : {Sizes{.n = 2, .t = 3, .h = 1, .hv = 2}, {.n = 1, .t = 9}, {.k = 64, .v = 96}}) {
    std::vector<Array> given = inputs(s);
    Array large = OperatorTest::run(compact, given, {{"variant", "large_batch"}})[1];
    EXPECT_EQ(OperatorTest::run(compact, given, {{"variant", "small_batch"}})[1].bytes,
              large.bytes);
  }
}

TEST_F(KdaConvVerify, LaunchesNothingForNoRows) { run_both(inputs({.n = 0, .lines = 1}), safe); }

TEST_F(KdaConvVerify, RefusesWhatItCannotTake) {
  auto refusal_with = [&](Array array, const Options& options = {}) {
    std::vector<Array> given = inputs({});
    named(given, array.name) = array;
    return refusal(op, given, options);
  };
  EXPECT_EQ(refusal_with(random("ssm_states", f32, {2, 1, 128, 96})),
            "kda_conv_verify: ssm_states is f32[2,1,128,96]; K must be 64 or 128 and V a multiple "
            "of 32 for this kernel");
  EXPECT_EQ(refusal_with(random("mixed_qkv", bf16, {5, 384})),
            "kda_conv_verify: mixed_qkv is bf16[5,384] for N = 2; it must have N T rows");
  EXPECT_EQ(refusal_with(random("a", bf16, {2, 2, 1, 64})),
            "kda_conv_verify: a is bf16[2,2,1,64]; it must be [2,2,1,128]");
  EXPECT_EQ(refusal_with(random("A_log", f32, {2})),
            "kda_conv_verify: A_log is f32[2]; it must have 1 contiguous elements");
  EXPECT_EQ(refusal_with(random("a", bf16, {2, 2, 1, 128}), {{"lower_bound", "inf"}}),
            "kda_conv_verify: option 'lower_bound' is 'inf'; it must be a finite number, or one of "
            "none");
  EXPECT_EQ(refusal_with(random("a", bf16, {2, 2, 1, 128}), {{"softplus_beta", "0"}}),
            "kda_conv_verify: softplus_beta=0.000000; it must be greater than 0");
}

}  // namespace
}  // namespace tilewright
