// SPDX-License-Identifier: Apache-2.0
// moe_topk against its float64 reference: scorings, groups, ties, NaN and infinities, padding.
#include "kernels/moe_topk/moe_topk.h"
#include "operator_fixture.h"
#include "tilewright/tune.h"

#include <array>
#include <cmath>
#include <random>
#include <set>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Options;
using test::Placement;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class MoeTopk : public OperatorTest {
 protected:
  static Array logits(std::vector<double> values, Type type = f32) {
    auto count = static_cast<std::int64_t>(values.size());
    return make_array("logits", type, {1, count}, values);
  }
  static Array numbers(std::string name, std::vector<double> values, Type type = s32) {
    auto count = static_cast<std::int64_t>(values.size());
    return make_array(std::move(name), type, {count}, values);
  }
  std::vector<double> ids_of(const std::vector<Array>& inputs, const Options& options) {
    return to_doubles(run(topk, inputs, options)[0]);
  }
  std::vector<double> weights_of(const std::vector<Array>& inputs, const Options& options) {
    return to_doubles(run(topk, inputs, options)[1]);
  }

  /// Scores that are equal in many places, some of them NaN or infinite.
  static Array few_values(Type type, std::vector<std::int64_t> shape) {
    std::mt19937 generator(7);
    std::vector<double> values(static_cast<std::size_t>(shape[0] * shape[1]));
    for (double& value : values) {
      const auto draw = generator() % 16;
      value = draw < 13 ? static_cast<double>(draw % 5) - 2
                        : std::array{static_cast<double>(NAN), -kInfinity, -0.0}[draw - 13];
    }
    return make_array("logits", type, shape, values);
  }

  /// A bias that leaves scores equal, where kernels count on one that does not.
  static Array no_bias(std::int64_t experts) {
    return numbers("bias", std::vector<double>(static_cast<std::size_t>(experts), 0), f32);
  }

  void expect_same_bits(const std::vector<Array>& given, const Options& options) {
    const tune::Watch watch;
    std::vector<Array> first = run(topk, given, options);
    for (const tune::Lookup& lookup : std::vector(watch.lookups())) {
      for (const tune::Config& config :
           tune::candidates(*lookup.space, device.properties(), lookup.key)) {
        const tune::Pin pin(*lookup.space, config);
        std::vector<Array> again = run(topk, given, options);
        for (std::size_t i = 0; i < first.size(); ++i)
          EXPECT_EQ(again[i].bytes, first[i].bytes) << tune::config_text(*lookup.space, config);
      }
    }
  }

  const Operator& topk = moe_topk_operator();
};

TEST_F(MoeTopk, ChoosesAmongAnyNumberOfExperts) {
  for (std::int64_t experts :
       {1, 2, 7, 31, 60, 72, 128, 160, 192, 257, 384, 512, 896, 1024, 4096}) {
    std::string k = std::to_string(std::min<std::int64_t>(experts, 8));
    run(topk, {random("logits", f32, {3, experts}, 3)}, {{"k", k}});
    run(topk, {random("logits", f32, {6, experts}, 3)}, {{"k", k}, {"scoring", "sigmoid"}});
  }
}

TEST_F(MoeTopk, ChoosesAnyNumberOfExperts) {
  run(topk, {random("logits", f32, {2, 4096}, 3)}, {{"k", "64"}});
  for (const char* k : {"1", "2", "5", "16", "32", "33", "64"}) {
    for (const char* scoring : {"softmax", "softmax_selected", "sigmoid"})
      run(topk, {random("logits", f32, {3, 100}, 3)}, {{"k", k}, {"scoring", scoring}});
  }
}

TEST_F(MoeTopk, ChoosesEveryExpertThereIs) {
  for (std::int64_t experts : {1, 8, 33, 64})
    run(topk, {random("logits", bf16, {2, experts}, 3)}, {{"k", std::to_string(experts)}});
}

TEST_F(MoeTopk, TakesLogitsOfAllTypesAndWritesBothKindsOfIds) {
  for (Type type : {bf16, f16, f32}) {
    for (const char* ids : {"s32", "s64"}) {
      for (const char* scoring : {"softmax", "sigmoid"}) {
        run(topk, {random("logits", type, {9, 128}, 2)},
            {{"k", "8"}, {"id_type", ids}, {"scoring", scoring}});
      }
    }
  }
}

TEST_F(MoeTopk, RoutesManyTokensInBlocksOfSeveralWarps) {
  for (std::int64_t tokens : {4, 5, 127, 129}) {  // the emulator has four multiprocessors
    run(topk, {random("logits", bf16, {tokens, 128}, 2)}, {{"k", "8"}});
  }
}

TEST_F(MoeTopk, GivesTheSameBitsInEveryConfiguration) {
  for (const char* k : {"1", "3", "8", "16"}) {
    for (const char* scoring : {"softmax", "sigmoid"}) {
      std::vector<Array> given{random("logits", f32, {5, 100}, 3), random("bias", f32, {100}, 0.1)};
      if (scoring == std::string_view("softmax")) given.pop_back();
      expect_same_bits(given, {{"k", k}, {"scoring", scoring}});
      expect_same_bits({few_values(f32, {5, 100})}, {{"k", k}, {"scoring", scoring}});
      expect_same_bits({few_values(bf16, {5, 100})}, {{"k", k}, {"scoring", scoring}});
    }
  }
}

TEST_F(MoeTopk, GivesTheSameBitsWithAnyNumberOfWarpsForAToken) {
  struct Row {
    Type type;
    std::int64_t experts;
    const char *groups, *kept;
  };
  for (Row row : {Row{f32, 384, "1", "1"},
                  {bf16, 384, "1", "1"},
                  {f32, 256, "8", "4"},
                  {f16, 160, "8", "3"},
                  {f32, 257, "1", "1"},
                  {f32, 1000, "5", "2"}}) {
    Options options{
        {"k", "8"}, {"scoring", "sigmoid"}, {"groups", row.groups}, {"topk_group", row.kept}};
    expect_same_bits(
        {random("logits", row.type, {3, row.experts}, 3), random("bias", f32, {row.experts}, 0.1)},
        options);
    options.emplace_back("shared_experts", "1");
    expect_same_bits(
        {few_values(row.type, {3, row.experts}), no_bias(row.experts), numbers("bound_m", {2})},
        options);
  }
}

TEST_F(MoeTopk, ChoosesTheSameExpertsInEverySchedule) {
  run_schedules(topk, {random("logits", bf16, {9, 60}, 2)}, {{"k", "5"}});
  run_schedules(topk, {random("logits", f32, {9, 96}, 2), random("bias", f32, {96}, 0.1)},
                {{"k", "6"}, {"scoring", "sigmoid"}, {"groups", "4"}, {"topk_group", "2"}});
  run_schedules(topk, {random("logits", f32, {3, 384}, 2), random("bias", f32, {384}, 0.1)},
                {{"k", "8"}, {"scoring", "sigmoid"}});
}

TEST_F(MoeTopk, RoutesAsTheModelsDo) {
  run(topk, {random("logits", bf16, {7, 128}, 3)}, {{"k", "8"}});  // Qwen3
  run(topk, {random("logits", bf16, {7, 128}, 3)},
      {{"k", "4"}, {"scoring", "softmax_selected"}});  // gpt-oss
  Options deepseek = {
      {"k", "8"},       {"scoring", "sigmoid"},  {"groups", "8"},         {"topk_group", "4"},
      {"scale", "2.5"}, {"shared_experts", "1"}, {"shared_weight", "0.4"}};
  run(topk, {random("logits", f32, {7, 256}, 2), random("bias", f32, {256}, 0.1, 2)}, deepseek);
  Options kimi = {{"k", "8"}, {"scoring", "sigmoid"}, {"scale", "2.446"}};
  run(topk, {random("logits", f32, {7, 256}, 2), random("bias", f32, {256}, 0.1, 2)}, kimi);
}

TEST_F(MoeTopk, WeighsWithoutRenormalising) {
  for (const char* scoring : {"softmax", "softmax_selected", "sigmoid"}) {
    for (const char* scale : {"1", "-2.5"}) {
      run(topk, {random("logits", f32, {5, 96}, 4)},
          {{"k", "6"}, {"scoring", scoring}, {"renormalize", "false"}, {"scale", scale}});
    }
  }
}

TEST_F(MoeTopk, KeepsTheBestGroupsOfAllSizes) {
  struct Row {
    std::int64_t experts;
    const char *groups, *kept;
  };
  for (Row row : {Row{256, "8", "4"},
                  {160, "8", "3"},
                  {60, "3", "2"},
                  {96, "32", "5"},
                  {20, "20", "6"},
                  {64, "1", "1"},
                  {1024, "4", "1"},
                  {70, "5", "5"}}) {
    run(topk,
        {random("logits", f32, {5, row.experts}, 2), random("bias", f32, {row.experts}, 1, 2)},
        {{"k", "6"}, {"scoring", "sigmoid"}, {"groups", row.groups}, {"topk_group", row.kept}});
  }
}

TEST_F(MoeTopk, TakesExpertsOfKeptGroupsEvenIfTheirScoresAreNegative) {
  // Group 1 is the best one, and all its biased scores are negative: masked groups must not be 0.
  std::vector<double> bias{-9, -9, -1, -1};
  EXPECT_EQ(ids_of({logits({0, 0, 0, 0}), numbers("bias", bias, f32)},
                   {{"k", "2"}, {"scoring", "sigmoid"}, {"groups", "2"}}),
            (std::vector<double>{2, 3}));
}

TEST_F(MoeTopk, GoesOnWithTheLowestMaskedExpertsWhenGroupsAreTooSmall) {
  EXPECT_EQ(ids_of({logits({0, 0, 1, 1})}, {{"k", "3"}, {"scoring", "sigmoid"}, {"groups", "2"}}),
            (std::vector<double>{2, 3, 0}));
}

TEST_F(MoeTopk, GivesTiesToTheLowerExpertAndGroup) {
  for (const char* scoring : {"softmax", "sigmoid"}) {
    Options options = {{"k", "4"}, {"scoring", scoring}};
    EXPECT_EQ(ids_of({logits(std::vector<double>(70, 1.5))}, options),
              (std::vector<double>{0, 1, 2, 3}));
    EXPECT_EQ(ids_of({logits({-0.0, 2, 0.0, 2, -0.0, 2})}, options),
              (std::vector<double>{1, 3, 5, 0}));
  }
  EXPECT_EQ(ids_of({logits(std::vector<double>(64, 0.5))},
                   {{"k", "2"}, {"scoring", "sigmoid"}, {"groups", "8"}, {"topk_group", "2"}}),
            (std::vector<double>{0, 1}));
}

TEST_F(MoeTopk, BreaksManyTiesAsAStableSortDoes) {
  for (Type type : {bf16, f16, f32}) {
    for (std::int64_t experts : {60, 100, 384, 1000}) {
      for (const char* scoring : {"softmax", "sigmoid"}) {
        for (const char* k : {"8", "50"}) {
          std::vector<Array> given{few_values(type, {4, experts})};
          run(topk, given, {{"k", k}, {"scoring", scoring}});
          given.push_back(no_bias(experts));
          if (scoring == std::string_view("sigmoid"))
            run(topk, given, {{"k", k}, {"scoring", scoring}});
        }
      }
    }
  }
}

TEST_F(MoeTopk, BreaksTiesOfMaskedGroupsAsAStableSortDoes) {
  for (std::int64_t experts : {64, 256, 384}) {
    for (const char* k : {"8", "40", "64"}) {
      Options options{{"k", k}, {"scoring", "sigmoid"}, {"groups", "8"}, {"topk_group", "1"}};
      run(topk, {few_values(f32, {6, experts})}, options);
      run(topk, {few_values(f32, {6, experts}), no_bias(experts)}, options);
    }
  }
}

TEST_F(MoeTopk, TellsTheLastExpertFromNoneEvenIfItIsNan) {
  for (Type type : {bf16, f32}) {
    std::vector<double> values(4096, 0);
    values.back() = NAN;
    run(topk, {logits(values, type)}, {{"k", "64"}});
    values.assign(4096, NAN);
    run(topk, {logits(values, type)}, {{"k", "64"}});
  }
}

TEST_F(MoeTopk, PutsNanBehindMinusInfinityWithoutWeight) {
  std::vector<double> values{NAN, -kInfinity, 1, NAN, 0};
  for (const char* scoring : {"softmax", "softmax_selected", "sigmoid"}) {
    for (Type type : {f32, f16, bf16}) {
      Options options = {{"k", "5"}, {"scoring", scoring}};
      EXPECT_EQ(ids_of({logits(values, type)}, options), (std::vector<double>{2, 4, 1, 0, 3}));
      std::vector<double> weights = weights_of({logits(values, type)}, options);
      EXPECT_GT(weights[0], weights[1]);
      EXPECT_EQ(std::vector<double>(weights.begin() + 2, weights.end()),
                (std::vector<double>{0, 0, 0}));
    }
  }
}

TEST_F(MoeTopk, PutsNanOfMaskedGroupsBehindTheirOtherExpertsWithoutWeight) {
  // Group 1 is kept; of group 0, expert 1 is chosen behind it, before both NaN.
  std::vector<Array> given{logits({NAN, -1, NAN, 2, 3, 4})};
  for (const char* k : {"5", "6"}) {
    for (const char* renormalize : {"true", "false"}) {
      Options options = {
          {"k", k}, {"scoring", "sigmoid"}, {"groups", "2"}, {"renormalize", renormalize}};
      std::vector<double> ids = ids_of(given, options), weights = weights_of(given, options);
      ids.resize(5);
      weights.erase(weights.begin(), weights.begin() + 4);
      EXPECT_EQ(ids, (std::vector<double>{5, 4, 3, 1, 0}));
      EXPECT_EQ(weights, std::vector<double>(weights.size(), 0));
    }
  }
}

TEST_F(MoeTopk, GivesDistinctIdsWithoutWeightForARowOfNan) {
  for (const char* scoring : {"softmax", "softmax_selected", "sigmoid"}) {
    for (const char* renormalize : {"true", "false"}) {
      Options options = {{"k", "3"}, {"scoring", scoring}, {"renormalize", renormalize}};
      std::vector<Array> given = {logits(std::vector<double>(40, NAN))};
      EXPECT_EQ(ids_of(given, options), (std::vector<double>{0, 1, 2}));
      EXPECT_EQ(weights_of(given, options), (std::vector<double>{0, 0, 0}));
    }
  }
}

TEST_F(MoeTopk, GivesAnInfiniteLogitEverything) {
  std::vector<Array> given = {logits({3, kInfinity, -kInfinity, 5})};
  EXPECT_EQ(weights_of(given, {{"k", "3"}}), (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(weights_of(given, {{"k", "3"}, {"renormalize", "false"}}),
            (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(weights_of(given, {{"k", "1"}, {"scoring", "sigmoid"}, {"renormalize", "false"}}),
            (std::vector<double>{1}));
  EXPECT_EQ(weights_of({logits({kInfinity, 1, kInfinity})}, {{"k", "3"}}),
            (std::vector<double>{0.5, 0.5, 0}));
  EXPECT_EQ(weights_of({logits({-kInfinity, -kInfinity})}, {{"k", "2"}}),
            (std::vector<double>{0.5, 0.5}));
}

TEST_F(MoeTopk, KeepsWeightsExactFarBelowTheLargestLogit) {
  run(topk, {logits({1e4, 9999.7, 9963.123, 9920.5, 9900.01})}, {{"k", "5"}});
  run(topk, {logits({3e38, -3e38, 2.9e38, 0})}, {{"k", "4"}, {"renormalize", "false"}});
  run(topk, {logits({-87.5, -95.25, -100, -103.9, -200})},
      {{"k", "5"}, {"scoring", "sigmoid"}, {"scale", "2.5"}});
}

TEST_F(MoeTopk, WritesTheMappedExperts) {
  std::vector<double> map(128, -1);
  for (std::size_t e = 1; e < map.size(); e += 4)
    map[e] = static_cast<double>(e / 4);
  run(topk, {random("logits", bf16, {6, 128}, 2), numbers("expert_map", map)},
      {{"k", "8"}, {"shared_experts", "2"}});
}

TEST_F(MoeTopk, MarksRowsThatArePadding) {
  for (double bound : {0.0, 3.0, 6.0, 100.0}) {
    std::vector<double> ids = ids_of({random("logits", bf16, {6, 64}), numbers("bound_m", {bound})},
                                     {{"k", "4"}, {"shared_experts", "1"}});
    for (std::size_t i = 0; i < ids.size(); ++i)
      EXPECT_EQ(ids[i] == -1, i / 5 >= static_cast<std::size_t>(bound));
  }
}

TEST_F(MoeTopk, AppendsSharedExpertsBeyondOneRoundOfLanes) {
  run(topk, {random("logits", f32, {2, 80})}, {{"k", "30"}, {"shared_experts", "5"}});
  run(topk, {random("logits", f32, {2, 80})}, {{"k", "64"}, {"shared_experts", "64"}});
}

TEST_F(MoeTopk, TakesStridesAndAlignments) {
  for (std::int64_t padding : {0, 1, 4}) {
    for (std::int64_t offset : {0, 1, 2}) {
      run(topk, {random("logits", bf16, {5, 128}, 2), random("bias", f32, {128}, 1, 2)},
          {{"k", "8"}, {"scoring", "sigmoid"}, {"groups", "4"}, {"topk_group", "2"}},
          Placement{.row_padding = padding, .offset_elems = offset});
    }
  }
}

TEST_F(MoeTopk, RoutesARowAloneAsAmongOthers) {
  Array many = random("logits", bf16, {64, 128}, 2);
  std::vector<Array> together = run(topk, {many}, {{"k", "8"}});
  for (std::int64_t row : {0, 17, 63}) {
    Array one = make_array("logits", bf16, {1, 128});
    std::copy_n(many.bytes.begin() + row * 256, 256, one.bytes.begin());
    std::vector<Array> alone = run(topk, {one}, {{"k", "8"}});
    for (std::size_t output : {0U, 1U}) {
      auto begin = together[output].bytes.begin() + row * 32;
      EXPECT_TRUE(std::equal(alone[output].bytes.begin(), alone[output].bytes.end(), begin));
    }
  }
}

TEST_F(MoeTopk, LaunchesNothingForNoTokens) {
  run(topk, {random("logits", bf16, {0, 16})}, {{"k", "2"}});
}

TEST_F(MoeTopk, RefusesWhatItCannotRoute) {
  std::vector<Array> given = {random("logits", bf16, {2, 12})};
  EXPECT_EQ(refusal(topk, given),
            "moe_topk: option 'k' is missing; it must be an integer of at least 1 and at most 64");
  EXPECT_EQ(refusal(topk, given, {{"k", "13"}}), "moe_topk: k=13; it must be 1 to 12");
  EXPECT_EQ(refusal(topk, given, {{"k", "2"}, {"scoring", "sigmoid"}, {"groups", "5"}}),
            "moe_topk: groups=5; it must divide the 12 experts");
  EXPECT_EQ(refusal(topk, given,
                    {{"k", "2"}, {"scoring", "sigmoid"}, {"groups", "4"}, {"topk_group", "5"}}),
            "moe_topk: topk_group=5; it must be 1 to 4");
  EXPECT_EQ(refusal(topk, given, {{"k", "2"}, {"groups", "4"}}),
            "moe_topk: groups=4; only scoring=sigmoid has them");
  EXPECT_EQ(refusal(topk, {given[0], random("bias", f32, {12})}, {{"k", "2"}}),
            "moe_topk: bias is given; only scoring=sigmoid has one");
  EXPECT_EQ(refusal(topk, {random("logits", bf16, {2, 4097})}, {{"k", "2"}}),
            "moe_topk: logits is bf16[2,4097]; E must be 1 to 4096");
  EXPECT_EQ(
      refusal(topk, {given[0], random("bias", f32, {11})}, {{"k", "2"}, {"scoring", "sigmoid"}}),
      "moe_topk: bias is f32[11]; it must have 12 contiguous elements");
}

}  // namespace
}  // namespace tilewright
