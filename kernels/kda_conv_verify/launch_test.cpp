// SPDX-License-Identifier: Apache-2.0
// Launches of kda_conv_verify that follow one another, and that must give the same bits.
#include "kernels/kda_conv_verify/verify_fixture.h"

namespace tilewright {
namespace {

using test::Options;
using test::Sizes;

class KdaConvVerifyLaunch : public test::KdaConvVerifyTest {};

TEST_F(KdaConvVerifyLaunch, ContinuesFromTheRolledState) {
  std::vector<Array> given = inputs({.n = 2, .t = 3});
  for (std::uint64_t call = 0; call < 3; ++call) {
    std::vector<Array> outputs = run_both(given, safe);
    Array rolled = outputs.back();
    named(given, "conv_state") = rolled;
    named(given, "mixed_qkv") = random("mixed_qkv", bf16, {6, 384}, 0.5, 90 + call);
  }
}

TEST_F(KdaConvVerifyLaunch, GivesTheSameBitsWhenAGraphIsReplayed) {
  std::vector<Array> given = inputs({.n = 2, .t = 3});
  for (const char* variant : {"large_batch", "small_batch"}) {
    std::vector<Array> first = run(given, {{"variant", variant}}, {});
    for (const Array& again : replay(given, 2))
      EXPECT_EQ(again.bytes, output(first, again.name).bytes) << variant << ": " << again.name;
  }
}

TEST_F(KdaConvVerifyLaunch, ContinuesFromAnyAcceptedToken) {
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

TEST_F(KdaConvVerifyLaunch, HasNoBankConflicts) {
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

TEST_F(KdaConvVerifyLaunch, GivesTheSameBitsForAnyOrderOfBlocks) {
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

TEST_F(KdaConvVerifyLaunch, GivesTheSameBitsForEveryTiling) {
  using enum KdaVariant;
  for (std::int64_t tokens : {3, 7}) {
    std::vector<Array> given = inputs({.n = 1, .t = tokens, .h = 1, .hv = 2});
    std::vector<Array> first = run_both(given, {});
    for (const KdaTiling& tiling :
         {KdaTiling{small_batch, 2, 8, 2, 16, 1, false},
          KdaTiling{large_batch, 8, 8, 1, 16, 1, true},
          KdaTiling{large_batch, 8, 16, 1, 8, 1, true},
          KdaTiling{large_batch, 8, 32, 1, 4, 2, true, false, false, KdaFetch::ahead},
          KdaTiling{large_batch, 8, 64, 1, 2, 4, false},
          KdaTiling{large_batch, 8, 128, 2, 1, 3, false},
          KdaTiling{large_batch, 8, 128, 4, 2, 2, false, false, false, KdaFetch::states},
          KdaTiling{large_batch, 8, 64, 2, 4, 1, true, false, false, KdaFetch::states},
          KdaTiling{large_batch, 8, 64, 2, 4, 1, true, false, false, KdaFetch::states, true},
          KdaTiling{large_batch, 9, 32, 1, 8, 1, true, false, false, KdaFetch::ahead, true},
          KdaTiling{large_batch, 17, 64, 1, 2, 1, true, false, false, KdaFetch::inputs},
          KdaTiling{large_batch, 9, 32, 1, 8, 2, true, false, false, KdaFetch::states},
          KdaTiling{large_batch, 16, 32, 1, 8, 1, true, false, false, KdaFetch::states},
          KdaTiling{large_batch, 16, 64, 1, 4, 1, true},
          KdaTiling{large_batch, 16, 128, 1, 2, 1, true, false, false, KdaFetch::ahead}}) {
      std::vector<Array> outputs = run(given, {}, {.tiling = tiling});
      for (std::size_t i = 0; i < first.size(); ++i)
        EXPECT_EQ(outputs[i].bytes, first[i].bytes) << to_string(tiling) << ": " << first[i].name;
    }
  }
}

TEST_F(KdaConvVerifyLaunch, FetchesWhateverTheIndicesAreInEitherLayout) {
  std::vector<Array> given = inputs({.n = 4, .t = 2, .lines = 5});
  set_indices(given, {4, -1, 2, 0}, {0, 1, -1, 3}, {3, 0, 4, -1});
  KdaTiling tiling{.tile_rows = 32, .rows_per_lane = 1, .cluster = 4, .eager = true};
  for (bool channels : {false, true}) {
    std::vector<Array> first = run(given, {}, {.channels_contiguous = channels, .tiling = tiling});
    for (auto [fetch, guesses] : {std::pair{KdaFetch::inputs, false},
                                  {KdaFetch::states, false},
                                  {KdaFetch::ahead, false},
                                  {KdaFetch::states, true}}) {
      KdaTiling fetching = tiling;
      fetching.fetch = fetch;
      fetching.guesses_state = guesses;
      fetching.blocks_per_sm = guesses ? 1 : tiling.blocks_per_sm;
      std::vector<Array> outputs =
          run(given, {}, {.channels_contiguous = channels, .tiling = fetching});
      for (std::size_t i = 0; i < first.size(); ++i)
        EXPECT_EQ(outputs[i].bytes, first[i].bytes) << to_string(fetching) << first[i].name;
    }
  }
}

/// Indices that name no row of a pool before the wait count as ones that may still change.
TEST_F(KdaConvVerifyLaunch, LoadsAgainWhereIndicesCameLate) {
  for (std::int64_t tokens : {2, 5}) {
    std::vector<Array> given = inputs({.n = 2, .t = tokens, .lines = 4});
    set_indices(given, {3, 1}, {0, 1}, {2, 3});
    KdaTiling tiling{.tile_rows = 32, .rows_per_lane = 1, .cluster = 4, .blocks_per_sm = 1};
    tiling.eager = true;
    std::vector<Array> first = run(given, {}, {.tiling = tiling});
    tiling.fetch = KdaFetch::states;
    for (bool guesses : {false, true}) {
      tiling.guesses_state = guesses;
      std::vector<Array> outputs = run(given, {}, {.tiling = tiling, .short_pools = true});
      for (std::size_t i = 0; i < first.size(); ++i)
        EXPECT_EQ(outputs[i].bytes, first[i].bytes) << to_string(tiling) << first[i].name;
    }
  }
}

}  // namespace
}  // namespace tilewright
