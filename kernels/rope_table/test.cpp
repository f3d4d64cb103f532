// SPDX-License-Identifier: Apache-2.0
// rope_table against its float64 reference: scalings, modes, types, far positions.
#include "kernels/rope_table/rope_table.h"
#include "operator_fixture.h"

#include <algorithm>
#include <cmath>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Options;

class RopeTable : public OperatorTest {
 protected:
  const Operator& op = rope_table_operator();

  static Options with(Options options, const Options& more) {
    options.insert(options.end(), more.begin(), more.end());
    return options;
  }
  std::vector<double> table(const Options& options) {
    return to_doubles(run(op, {}, options).front());
  }
};

constexpr const char* kLlama3[][2] = {
    {"theta", "5e5"}, {"scaling", "llama3"}, {"factor", "8"}, {"original_max_position", "8192"}};
constexpr const char* kGptOss[][2] = {
    {"theta", "150000"}, {"scaling", "yarn"}, {"factor", "32"}, {"original_max_position", "4096"}};

template <std::size_t N>
Options options(const char* const (&pairs)[N][2]) {
  Options all;
  for (const auto& pair : pairs)
    all.emplace_back(pair[0], pair[1]);
  return all;
}

TEST_F(RopeTable, IsRightForEveryScalingAndAngle) {
  for (const char* scaling : {"none", "linear", "dynamic_ntk", "llama3", "yarn"}) {
    for (const char* angle : {"f32", "f64"}) {
      const std::string name = scaling;
      test::Options options{{"theta", "1e6"},
                            {"rotary_dim", "64"},
                            {"max_position", "40"},
                            {"scaling", name},
                            {"angle", angle}};
      if (name != "none") options.emplace_back("factor", "4");
      if (name != "none" && name != "linear") options.emplace_back("original_max_position", "16");
      run(op, {}, options);
    }
  }
}

TEST_F(RopeTable, IsRightInEveryConfiguration) {
  run_candidates(op, {}, {{"rotary_dim", "6"}, {"max_position", "67"}});
}

TEST_F(RopeTable, TakesWidthsAndTypes) {
  for (const char* width : {"2", "6", "72", "256"})
    run(op, {}, {{"rotary_dim", width}, {"max_position", "19"}});
  for (const char* type : {"f32", "bf16", "f16"})
    run(op, {}, {{"rotary_dim", "64"}, {"max_position", "21"}, {"out_type", type}});
}

TEST_F(RopeTable, BeginsWithOnesAndZeros) {
  std::vector<double> first = table({{"rotary_dim", "8"}, {"max_position", "1"}});
  EXPECT_EQ(first, (std::vector<double>{1, 1, 1, 1, 0, 0, 0, 0}));
}

TEST_F(RopeTable, KeepsTurnsOfLongTextsOfTheModels) {
  for (const char* truncate : {"true", "false"}) {
    run(op, {},
        with(options(kGptOss),
             {{"rotary_dim", "64"}, {"max_position", "33"}, {"truncate", truncate}}));
  }
  run(op, {}, with(options(kLlama3), {{"rotary_dim", "128"}, {"max_position", "33"}}));
}

/// Llama 3.1: wavelengths below 2048 are kept, those beyond 8192 divided by 8. Of the 64
/// frequencies 5e5^(-i/64) the first 29 have 2 pi 5e5^(i/64) < 2048, and those from 35 on have more
/// than 8192.
TEST_F(RopeTable, DividesLowFrequenciesAloneForLlama3) {
  const Options size{{"rotary_dim", "128"}, {"max_position", "2"}, {"theta", "5e5"}};
  const std::vector<double> plain = table(size);
  const std::vector<double> scaled = table(with(size, options(kLlama3)));
  const std::vector<double> divided = table(with(size, {{"scaling", "linear"}, {"factor", "8"}}));
  for (std::size_t i = 0; i < 64; ++i) {
    const std::size_t sine = 128 + 64 + i;  // of position 1
    if (i < 29) {
      EXPECT_EQ(scaled[sine], plain[sine]) << i;
    } else if (i > 34) {
      EXPECT_EQ(scaled[sine], divided[sine]) << i;
    } else {
      EXPECT_LT(scaled[sine], plain[sine]) << i;
      EXPECT_GT(scaled[sine], divided[sine]) << i;
    }
  }
}

TEST_F(RopeTable, MultipliesByTheAttentionFactorOfYarn) {
  const Options size{{"rotary_dim", "64"}, {"max_position", "1"}};
  EXPECT_EQ(table(with(size, options(kGptOss))).front(),
            static_cast<double>(static_cast<float>(0.1 * std::log(32.0) + 1)));
  EXPECT_EQ(table(with(with(size, options(kGptOss)), {{"attention_factor", "0.75"}})).front(),
            0.75);
}

/// Checkpoints know the rounded angles.
TEST_F(RopeTable, RoundsAnglesUnlessToldNotTo) {
  constexpr std::int64_t kPositions = 2048;
  const Options size{
      {"rotary_dim", "4"}, {"max_position", std::to_string(kPositions)}, {"theta", "3"}};
  const std::vector<double> rounded = table(size), exact = table(with(size, {{"angle", "f64"}}));
  double most = 0;
  for (std::size_t i = 0; i < rounded.size(); ++i)
    most = std::max(most, std::fabs(rounded[i] - exact[i]));
  EXPECT_GT(most, 0x1p-16);
  EXPECT_LT(most, 0x1p-13 + 2048 * 0x1p-25);  // half an ulp of 2047, and of the frequency
}

TEST_F(RopeTable, WritesTablesWithSpaceBetweenRows) {
  run(op, {}, {{"rotary_dim", "10"}, {"max_position", "9"}}, {.row_padding = 3, .offset_elems = 1});
}

TEST_F(RopeTable, LaunchesNothingForNoPositions) { run(op, {}, {{"max_position", "0"}}); }

TEST_F(RopeTable, RefusesWhatHasNoTable) {
  EXPECT_EQ(refusal(op, {}, {{"rotary_dim", "7"}}),
            "rope_table: cos_sin is f32[8192,7]; it must have rows of an even number of elements, "
            "2 to 1024");
  EXPECT_EQ(refusal(op, {}, {{"theta", "1"}}),
            "rope_table: theta=1; it must be finite and greater than 1");
  EXPECT_EQ(refusal(op, {}, {{"scaling", "llama3"}, {"low_freq_factor", "4"}}),
            "rope_table: high_freq_factor=4; it must be finite and greater than "
            "low_freq_factor");
  EXPECT_EQ(refusal(op, {}, {{"scaling", "yarn"}, {"beta_fast", "1"}}),
            "rope_table: beta_fast=1; it must be finite and greater than beta_slow");
  EXPECT_EQ(refusal(op, {}, {{"scaling", "dynamic_ntk"}, {"rotary_dim", "2"}}),
            "rope_table: cos_sin is f32[8192,2]; dynamic_ntk needs 4 elements a row");
  EXPECT_EQ(refusal(op, {}, {{"scaling", "llama3"}, {"beta_fast", "64"}}),
            "rope_table: beta_fast=64 with scaling=llama3; it is for yarn");
  EXPECT_EQ(refusal(op, {}, {{"factor", "0.5"}}).substr(0, 33),
            "rope_table: option 'factor' is '0");
}

}  // namespace
}  // namespace tilewright
