// SPDX-License-Identifier: Apache-2.0
// moe_dispatch against its reference in all variants, schedules and hard cases of routing.
#include "kernels/moe_dispatch/moe_dispatch.h"
#include "kernels/moe_dispatch/test_problem.h"
#include "operator_fixture.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Options;
using test::Placement;

constexpr std::array<const char*, 5> kVariants{"replicated", "decode", "decode_dependent",
                                               "prefill", "prefill_dependent"};

using Problem = DispatchProblem;

class MoeDispatch : public OperatorTest {
 protected:
  static std::vector<Array> inputs(const Problem& p) {
    return {random("x", p.type, {p.tokens, p.h}), dispatch_ids(p)};
  }
  static Options options(const Problem& p, Options more = {}) {
    more.emplace_back("experts", std::to_string(p.experts));
    return more;
  }
  void run_all(const std::vector<Array>& given, const Options& more, Placement placement = {}) {
    for (const char* variant : kVariants) {
      SCOPED_TRACE(variant);
      Options all = more;
      all.emplace_back("variant", variant);
      run(dispatch, given, all, placement);
    }
  }

  const Operator& dispatch = moe_dispatch_operator();
};

TEST_F(MoeDispatch, CopiesRowsOfEveryTypeAndWidth) {
  for (Type type : {bf16, f32, u8, e4m3, s32}) {
    for (std::int64_t h : {1, 7, 40, 1234})
      run(dispatch, inputs({.h = h, .type = type}), options({}));
  }
}

TEST_F(MoeDispatch, RoutesInEveryVariant) {
  for (Problem p : {Problem{},
                    {.tokens = 1, .k = 8},
                    {.tokens = 37, .k = 1},
                    {.tokens = 5, .k = 16},
                    {.tokens = 130, .k = 3, .experts = 5, .h = 8}}) {
    for (const char* block : {"1", "16"})
      run_all(inputs(p), options(p, {{"block", block}}));
  }
}

TEST_F(MoeDispatch, RoutesManyChoicesWithSeveralBlocks) {
  Problem p{.tokens = 300, .k = 4, .experts = 60, .h = 8};
  run_all(inputs(p), options(p, {{"block", "64"}}));
  run_all(inputs(p), options(p, {{"order", "unordered"}}));
  p = {.tokens = 2100, .k = 4, .experts = 60, .h = 1};  // more than a step of every warp
  run(dispatch, inputs(p), options(p, {{"variant", "prefill"}}));
}

TEST_F(MoeDispatch, TakesAnyNumberOfExperts) {
  for (std::int64_t experts : {1, 2, 60, 257, 384, 1024, 4096}) {
    Problem p{.tokens = 9, .k = 3, .experts = experts, .h = 8};
    run(dispatch, inputs(p), options(p, {{"variant", "replicated"}, {"block", "8"}}));
    run(dispatch, inputs(p), options(p, {{"variant", "prefill"}}));
  }
}

TEST_F(MoeDispatch, PutsAllTokensToOneExpert) {
  Problem p{.tokens = 40, .k = 1, .experts = 8, .h = 8};
  for (double expert : {0.0, 3.0, 7.0}) {
    run_all({inputs(p)[0], dispatch_ids(40, std::vector<double>(40, expert))},
            options(p, {{"block", "16"}}));
  }
}

TEST_F(MoeDispatch, SendsTokensToEveryExpert) {
  std::vector<double> all(24);
  for (std::size_t choice = 0; choice < all.size(); ++choice)
    all[choice] = static_cast<double>(7 - choice % 8);
  run_all({random("x", bf16, {3, 16}), dispatch_ids(3, all)}, {{"experts", "8"}, {"block", "4"}});
}

TEST_F(MoeDispatch, CountsARepeatedExpertTwice) {
  std::vector<Array> given = {random("x", bf16, {2, 16}), dispatch_ids(2, {5, 5, 1, 1, 5, 1})};
  run_all(given, {{"experts", "6"}});
  std::vector<Array> out = run(dispatch, given, {{"experts", "6"}});
  EXPECT_EQ(to_doubles(out[3]), (std::vector<double>{3, 4, 0, 1, 5, 2}));
}

TEST_F(MoeDispatch, SkipsWhatIsNoExpertOfThisRank) {
  std::vector<Array> given = {random("x", bf16, {2, 16}),
                              dispatch_ids(2, {-1, 9, 3, 2, -7, 1 << 30})};
  std::vector<Array> out = run(dispatch, given, {{"experts", "6"}});
  EXPECT_EQ(to_doubles(out[3]), (std::vector<double>{-1, -1, 1, 0, -1, -1}));
  run_all(given, {{"experts", "6"}});
  run_all({given[0], dispatch_ids(2, {-1, -1})}, {{"experts", "6"}, {"block", "16"}});
}

TEST_F(MoeDispatch, DividesTheExpertsAmongRanks) {
  Problem p{.tokens = 50, .k = 4, .experts = 16};
  std::vector<double> whole = to_doubles(run(dispatch, inputs(p), options(p))[1]);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    Options mine = options(p, {{"first_expert", std::to_string(4 * rank)}, {"local_experts", "4"}});
    run_all(inputs(p), mine);
    std::vector<double> counts = to_doubles(run(dispatch, inputs(p), mine)[1]);
    EXPECT_TRUE(std::equal(counts.begin(), counts.end(),
                           whole.begin() + 4 * static_cast<std::ptrdiff_t>(rank)));
  }
  run(dispatch, inputs(p), options(p, {{"first_expert", "15"}}));
}

TEST_F(MoeDispatch, ZeroesPaddingIfAsked) {
  for (const char* block : {"2", "16", "128"})
    run_all(inputs({.h = 72}), options({}, {{"block", block}, {"zero_pad", "true"}}));
}

TEST_F(MoeDispatch, CopiesScalesAndKeepsThoseOfPaddingFinite) {
  for (Type type : {f32, ue8m0}) {
    for (std::int64_t groups : {1, 130}) {
      std::vector<Array> given = inputs({.type = e4m3});
      given.push_back(make_array("scales", type, {13, groups},
                                 std::vector<double>(static_cast<std::size_t>(13 * groups), 0.5)));
      for (const char* block : {"1", "16"})
        run_all(given, options({}, {{"block", block}}));
    }
  }
}

TEST_F(MoeDispatch, TakesScalesOfAnyStrides) {
  Problem p{.tokens = 6, .k = 2, .experts = 4, .h = 16, .type = e4m3};
  Array scales = random("scales", f32, {6, 3});
  Array transposed = make_array("transposed", f32, {3, 6});
  for (std::size_t t = 0; t < 6; ++t) {
    for (std::size_t g = 0; g < 3; ++g)
      std::memcpy(&transposed.bytes[(g * 6 + t) * 4], &scales.bytes[(t * 3 + g) * 4], 4);
  }
  Buffer columns = upload<std::byte>(device, transposed.bytes);
  std::vector<Array> given = inputs(p);
  Buffer x = upload<std::byte>(device, given[0].bytes),
         ids = upload<std::byte>(device, given[1].bytes);
  auto view = [](const Buffer& buffer, Type type, std::vector<std::int64_t> shape) {
    return make_view(buffer.address(), type, shape);
  };
  MoeDispatchOptions options{.experts = 4};
  Buffer out(device, 192), out_scales(device, 144), numbers(device, 4096),
      workspace(device, moe_dispatch_workspace_bytes(options));
  workspace.fill(std::byte{0});
  std::uint64_t at = numbers.address();
  auto integers = [&](std::int64_t count) {
    at += 256;
    std::int64_t shape[] = {count};
    return make_view(at, s32, shape);
  };
  std::int64_t shape[] = {6, 3}, stride[] = {1, 6};
  MoeDispatchTensors tensors{.x = view(x, e4m3, {6, 16}),
                             .ids = view(ids, s32, {6, 2}),
                             .scales = make_view(columns.address(), f32, shape, stride),
                             .x_perm = view(out, e4m3, {12, 16}),
                             .scales_perm = view(out_scales, f32, {12, 3}),
                             .counts = integers(4),
                             .offsets = integers(5),
                             .slot = integers(12),
                             .total_rows = integers(1)};
  moe_dispatch(stream, tensors, options, {workspace.address(), workspace.size_bytes()});
  given.push_back(scales);
  std::vector<Array> expected = run(dispatch, given, MoeDispatch::options(p));
  std::size_t used = static_cast<std::size_t>(to_doubles(expected[6])[0]) * 12;
  std::vector<std::byte> copied(used);  // what is behind these rows has no values
  out_scales.download(copied);
  EXPECT_TRUE(std::equal(copied.begin(), copied.end(), expected[7].bytes.begin()));
}

TEST_F(MoeDispatch, CopiesTheBitsOfNan) {
  std::vector<Array> given = {make_array("x", f32, {1, 4}), dispatch_ids(1, {2, 0})};
  const std::uint32_t bits[] = {0x7f800001, 0xffc12345, 0x80000000, 1};
  std::memcpy(given[0].bytes.data(), bits, sizeof bits);
  Array out = run(dispatch, given, {{"experts", "3"}}).front();
  EXPECT_EQ(std::memcmp(out.bytes.data(), bits, sizeof bits), 0);
  EXPECT_EQ(std::memcmp(out.bytes.data() + 16, bits, sizeof bits), 0);
}

TEST_F(MoeDispatch, TakesStridesAndAlignments) {
  for (std::int64_t padding : {1, 4, 8}) {
    for (std::int64_t offset : {0, 1, 2}) {
      run(dispatch, inputs({.h = 64}), options({}, {{"block", "4"}, {"zero_pad", "true"}}),
          Placement{.row_padding = padding, .offset_elems = offset});
    }
  }
}

TEST_F(MoeDispatch, SplitsLongRowsIntoUnits) {
  for (std::int64_t h : {1023, 1024, 9000})
    run_all(inputs({.tokens = 3, .k = 2, .h = h}), options({}));
}

TEST_F(MoeDispatch, WritesWhatThereIsToWriteForNoTokens) {
  for (const char* block : {"1", "16"})
    run_all(inputs({.tokens = 0}), options({}, {{"block", block}, {"zero_pad", "true"}}));
}

/// Unordered rows: every choice has a row of its own expert, which holds the token's bits.
TEST_F(MoeDispatch, GivesEveryChoiceARowOfItsExpertInAnyOrder) {
  Problem p{.tokens = 300, .k = 4, .experts = 12, .h = 4};
  std::vector<Array> given = inputs(p);
  for (const char* variant : {"decode", "prefill"}) {
    std::vector<Array> out =
        run(dispatch, given,
            options(p, {{"order", "unordered"}, {"block", "8"}, {"variant", variant}}));
    std::vector<double> ids = to_doubles(given[1]), offsets = to_doubles(out[2]);
    std::vector<double> counts = to_doubles(out[1]), slot = to_doubles(out[3]);
    std::vector<double> sorted = to_doubles(out[4]);
    for (std::size_t choice = 0; choice < slot.size(); ++choice) {
      if (ids[choice] < 0) continue;
      auto expert = static_cast<std::size_t>(ids[choice]);
      EXPECT_GE(slot[choice], offsets[expert]);
      EXPECT_LT(slot[choice], offsets[expert] + counts[expert]);
      EXPECT_EQ(sorted[static_cast<std::size_t>(slot[choice])], static_cast<double>(choice));
      EXPECT_EQ(std::memcmp(&out[0].bytes[static_cast<std::size_t>(slot[choice]) * 8],
                            &given[0].bytes[choice / 4 * 8], 8),
                0);
    }
  }
}

TEST_F(MoeDispatch, GivesTheSameRowsInEverySchedule) {
  Problem p{.tokens = 300, .k = 4, .experts = 12, .h = 4};
  for (const char* order : {"stable", "unordered"}) {
    for (const char* variant : kVariants) {
      SCOPED_TRACE(std::string(order) + " " + variant);
      run_schedules(dispatch, inputs(p),
                    options(p, {{"order", order}, {"block", "4"}, {"variant", variant}}));
    }
  }
}

TEST_F(MoeDispatch, RefusesWhatItCannotDispatch) {
  std::vector<Array> given = inputs({});
  EXPECT_EQ(refusal(dispatch, given),
            "moe_dispatch: option 'experts' is missing; it must be an integer of at least 1 and at "
            "most 1048576");
  EXPECT_EQ(refusal(dispatch, given, {{"experts", "4294967304"}, {"first_expert", "4294967296"}}),
            "moe_dispatch: option 'experts' is '4294967304'; it must be an integer of at least 1 "
            "and at most 1048576");
  EXPECT_EQ(refusal(dispatch, given, {{"experts", "8"}, {"first_expert", "8"}}),
            "moe_dispatch: first_expert=8; it must be 0 to 7");
  EXPECT_EQ(
      refusal(dispatch, given, {{"experts", "8"}, {"first_expert", "6"}, {"local_experts", "3"}}),
      "moe_dispatch: local_experts=3; it must be 1 to 2");
  EXPECT_EQ(refusal(dispatch, given, {{"experts", "5000"}}),
            "moe_dispatch: the experts of this rank=5000; it must be 1 to 4096");
  EXPECT_EQ(refusal(dispatch, {random("x", bf16, {13, 0}), given[1]}, {{"experts", "8"}}),
            "moe_dispatch: x is bf16[13,0]; rows must have elements");
  EXPECT_EQ(refusal(dispatch, inputs({.tokens = 1025, .h = 1}),
                    {{"experts", "16"}, {"variant", "replicated"}}),
            "moe_dispatch: ids is s32[1025,4]; variant=replicated takes 4096 elements at most");
}

}  // namespace
}  // namespace tilewright
