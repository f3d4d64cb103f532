// SPDX-License-Identifier: Apache-2.0
// moe_dispatch against its reference in all variants, schedules and hard cases of routing.
#include "kernels/moe_dispatch/moe_dispatch.h"
#include "operator_fixture.h"
#include "tilewright/atomic.h"
#include "tilewright/compile.h"
#include "tilewright/control.h"
#include "tilewright/graph.h"
#include "tilewright/thread.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Options;
using test::Placement;

constexpr std::array<const char*, 5> kVariants{"replicated", "decode", "decode_dependent",
                                               "prefill", "prefill_dependent"};

constexpr std::array kAllVariants{DispatchVariant::replicated, DispatchVariant::decode,
                                  DispatchVariant::decode_dependent, DispatchVariant::prefill,
                                  DispatchVariant::prefill_dependent};

struct Problem {
  std::int64_t tokens = 13, k = 4, experts = 16, h = 40;
  Type type = bf16;
};

class MoeDispatch : public OperatorTest {
 protected:
  /// Experts of each token, distinct, in an order of no meaning; about one in nine is skipped.
  static Array ids(const Problem& p, std::uint64_t seed = 1) {
    std::vector<double> ids;
    for (std::int64_t choice = 0; choice < p.tokens * p.k; ++choice) {
      std::uint64_t token = static_cast<std::uint64_t>(choice / p.k),
                    k = static_cast<std::uint64_t>(choice % p.k);
      std::uint64_t hash = (token + 1) * seed * 0x9e3779b97f4a7c15U >> 40;
      std::uint64_t id = (hash + k * 7) % static_cast<std::uint64_t>(p.experts);
      ids.push_back((hash + k) % 9 == 0 ? -1 : static_cast<double>(id));
    }
    return make_array("ids", s32, {p.tokens, p.k}, ids);
  }
  static std::vector<Array> inputs(const Problem& p) {
    return {random("x", p.type, {p.tokens, p.h}), ids(p)};
  }
  static Options options(const Problem& p, Options more = {}) {
    more.emplace_back("experts", std::to_string(p.experts));
    return more;
  }
  static Array with_ids(std::int64_t tokens, std::vector<double> values) {
    auto k = static_cast<std::int64_t>(values.size()) / tokens;
    return make_array("ids", s32, {tokens, k}, values);
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
    run_all({inputs(p)[0], with_ids(40, std::vector<double>(40, expert))},
            options(p, {{"block", "16"}}));
  }
}

TEST_F(MoeDispatch, SendsTokensToEveryExpert) {
  std::vector<double> all(24);
  for (std::size_t choice = 0; choice < all.size(); ++choice)
    all[choice] = static_cast<double>(7 - choice % 8);
  run_all({random("x", bf16, {3, 16}), with_ids(3, all)}, {{"experts", "8"}, {"block", "4"}});
}

TEST_F(MoeDispatch, CountsARepeatedExpertTwice) {
  std::vector<Array> given = {random("x", bf16, {2, 16}), with_ids(2, {5, 5, 1, 1, 5, 1})};
  run_all(given, {{"experts", "6"}});
  std::vector<Array> out = run(dispatch, given, {{"experts", "6"}});
  EXPECT_EQ(to_doubles(out[3]), (std::vector<double>{3, 4, 0, 1, 5, 2}));
}

TEST_F(MoeDispatch, SkipsWhatIsNoExpertOfThisRank) {
  std::vector<Array> given = {random("x", bf16, {2, 16}), with_ids(2, {-1, 9, 3, 2, -7, 1 << 30})};
  std::vector<Array> out = run(dispatch, given, {{"experts", "6"}});
  EXPECT_EQ(to_doubles(out[3]), (std::vector<double>{-1, -1, 1, 0, -1, -1}));
  run_all(given, {{"experts", "6"}});
  run_all({given[0], with_ids(2, {-1, -1})}, {{"experts", "6"}, {"block", "16"}});
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
  std::vector<std::byte> copied = download<std::byte>(out_scales);
  EXPECT_TRUE(std::equal(copied.begin(), copied.begin() + static_cast<std::ptrdiff_t>(used),
                         expected[7].bytes.begin()));
}

TEST_F(MoeDispatch, CopiesTheBitsOfNan) {
  std::vector<Array> given = {make_array("x", f32, {1, 4}), with_ids(1, {2, 0})};
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
  if (!emulated()) GTEST_SKIP() << "the hardware chooses its schedules itself";
  const char* text = std::getenv("TILEWRIGHT_EMU_SEEDS");
  const std::uint64_t seeds = text == nullptr ? 3 : std::strtoull(text, nullptr, 10);
  Problem p{.tokens = 300, .k = 4, .experts = 12, .h = 4};
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    for (emu::Residency residency : {emu::Residency::all, emu::Residency::estimate}) {
      for (const char* order : {"stable", "unordered"}) {
        emu::Options how;
        how.seed = seed;
        how.residency = residency;
        how.divergence = static_cast<emu::Divergence>(seed % 3);
        device.set_options(how);
        for (const char* variant : {"replicated", "decode", "prefill"}) {
          run(dispatch, inputs(p),
              options(p, {{"order", order}, {"block", "4"}, {"variant", variant}}));
        }
      }
    }
  }
}

/// What a test of plans needs: tensors of the problem in memory, and a workspace.
struct OnDevice {
  OnDevice(const Device& device, const Problem& p, const Array& experts)
      : options{.experts = p.experts},
        x(device, p.tokens * p.h * 2),
        ids(upload<std::byte>(device, experts.bytes)),
        x_perm(device, p.tokens * p.k * p.h * 2),
        integers(device, (2 * p.experts + 2 + p.tokens * p.k) * 4),
        workspace(device, moe_dispatch_workspace_bytes(options)) {
    workspace.fill(std::byte{0});
    x.fill(std::byte{1});
    auto matrix = [](const Buffer& buffer, Type type, std::int64_t rows, std::int64_t columns) {
      std::int64_t shape[] = {rows, columns};
      return make_view(buffer.address(), type, shape);
    };
    auto part = [this](std::int64_t first, std::int64_t count) {
      std::int64_t shape[] = {count};
      return make_view(integers.address() + static_cast<std::uint64_t>(first * 4), s32, shape);
    };
    tensors = {.x = matrix(x, bf16, p.tokens, p.h),
               .ids = matrix(ids, s32, p.tokens, p.k),
               .x_perm = matrix(x_perm, bf16, p.tokens * p.k, p.h),
               .counts = part(0, p.experts),
               .offsets = part(p.experts, p.experts + 1),
               .slot = part(2 * p.experts + 2, p.tokens * p.k),
               .total_rows = part(2 * p.experts + 1, 1)};
  }
  Workspace space() const { return {workspace.address(), workspace.size_bytes()}; }
  std::vector<std::int32_t> slots() const {
    std::vector<std::int32_t> all = download<std::int32_t>(integers);
    return {all.begin() + tensors.counts.shape[0] + tensors.offsets.shape[0] + 1, all.end()};
  }
  MoeDispatchOptions options;
  Buffer x, ids, x_perm, integers, workspace;
  MoeDispatchTensors tensors;
};

TEST_F(MoeDispatch, WritesRowsBeyondTwoToThe31Elements) {
  if (!emulated()) GTEST_SKIP() << "takes 4 GiB: the emulator's memory is sparse";
  constexpr std::int64_t kStride = (std::int64_t{1} << 31) + 8;
  OnDevice placed(device, {.tokens = 1, .k = 2, .experts = 2, .h = 8}, with_ids(1, {1, 0}));
  Buffer far(device, 2 * (kStride + 8));
  placed.tensors.x_perm.address = far.address();
  placed.tensors.x_perm.stride[0] = kStride;
  for (DispatchVariant variant : {DispatchVariant::replicated, DispatchVariant::prefill}) {
    placed.options.variant = variant;
    moe_dispatch(stream, placed.tensors, placed.options, placed.space());
    for (std::int64_t row : {0, 1}) {
      std::vector<std::byte> bytes(16);
      far.download(bytes, row * kStride * 2);
      EXPECT_EQ(bytes, std::vector<std::byte>(16, std::byte{1}));
    }
  }
}

TEST_F(MoeDispatch, RefusesBarriersOfBlocksThatNeedNotBeResident) {
  Problem p{.tokens = 1500, .k = 4, .h = 8};
  OnDevice placed(device, p, ids(p));
  for (DispatchVariant variant : {DispatchVariant::decode, DispatchVariant::prefill}) {
    placed.options.variant = variant;
    MoeDispatchPlan plan =
        plan_moe_dispatch(device.properties(), placed.tensors, placed.options, placed.space());
    plan.launches[0].launch.cooperative = false;
    try {
      launch_moe_dispatch(stream, plan);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("the kernel has a GridBarrier"), std::string::npos);
    }
  }
}

TEST_F(MoeDispatch, DeadlocksVisiblyWhereTheEmulatorIsMadeToLaunchWithoutResidentBlocks) {
  if (!emulated()) GTEST_SKIP() << "would hang a GPU";
  Problem p{.tokens = 1500, .k = 4, .h = 8};
  OnDevice placed(device, p, ids(p));
  for (DispatchVariant variant : {DispatchVariant::decode, DispatchVariant::prefill}) {
    placed.options.variant = variant;
    DispatchLaunch first =
        plan_moe_dispatch(device.properties(), placed.tensors, placed.options, placed.space())
            .launches[0];
    Traced traced = first.trace(device.target());
    emu::Launch launch{.program = device.emulator().load(traced.module()),
                       .entry = traced.entry,
                       .grid = {static_cast<std::uint32_t>(first.launch.grid.x), 1, 1},
                       .block = {static_cast<std::uint32_t>(first.launch.block.x), 1, 1},
                       .cluster = {},
                       .dynamic_smem_bytes = first.launch.dynamic_smem_bytes,
                       .cooperative = false,
                       .params = {}};
    Parameters parameters = first.parameters();
    launch.params.assign(parameters.bytes().begin(), parameters.bytes().end());
    emu::Options how;
    how.residency = emu::Residency::one;
    emu::LaunchReport report = device.emulator().launch(launch, how);
    ASSERT_FALSE(report.findings.empty());
    EXPECT_EQ(report.findings[0].kind, emu::Kind::deadlock);
    EXPECT_NE(report.findings[0].message.find("blocks have not started: the device has room for 1"),
              std::string::npos)
        << to_string(report.findings[0]);
    placed.workspace.fill(std::byte{0});
  }
}

TEST_F(MoeDispatch, LeavesTheWorkspaceReadyForReplaysWithOtherIds) {
  Problem p{.tokens = 300, .k = 4, .h = 8};
  for (DispatchVariant variant : kAllVariants) {
    OnDevice placed(device, p, ids(p));
    placed.options.variant = variant;
    auto launch = [&] { moe_dispatch(stream, placed.tensors, placed.options, placed.space()); };
    launch();  // makes the kernels, which a capture must not
    Graph graph = Graph::capture(stream, launch);
    for (std::uint64_t seed : {2U, 3U}) {
      Array other = ids(p, seed);
      placed.ids.upload(other.bytes);
      graph.launch(stream);
      stream.synchronize();
      HostTensors reference;
      reference.set(make_array("x", bf16, {p.tokens, p.h}));
      reference.set(other);
      dispatch.reference(
          [&] {
            Arguments arguments(dispatch.schema);
            arguments.set_option("experts", static_cast<double>(p.experts));
            arguments.set("x_perm", placed.tensors.x_perm);
            return arguments;
          }(),
          reference);
      std::vector<double> expected = to_doubles(reference.at("slot"));
      std::vector<std::int32_t> slots = placed.slots();
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), slots.begin(), slots.end()));
    }
  }
}

/// Adds to `wrong` where words differ.
Kernel make_comparison(const Device& device, const View& words, const View& wrong) {
  auto compare = [](const Tensor& a, const Tensor& b, const Tensor& differences) {
    Value i = block_idx().x * block_dim().x + thread_idx().x;
    if_(i < to_value(a.shape()[0].value()),
        [&] { if_(a(i).load() != b(i).load(), [&] { red_add(differences(0), 1); }); });
  };
  return compile(device, trace({.name = "compare", .target = device.target(), .block = {256, 1, 1}},
                               compare, tensor_arg(words), tensor_arg(words), tensor_arg(wrong)));
}

/// TILEWRIGHT_REPEATS=100000 on a GPU.
TEST_F(MoeDispatch, GivesTheSameBitsInEveryRepeat) {
  const char* text = std::getenv("TILEWRIGHT_REPEATS");
  const int repeats = text == nullptr ? 2 : std::atoi(text);
  const int in_graph = std::min(repeats, 100);
  Problem p{.tokens = emulated() ? 20 : 256, .k = 8, .experts = 32, .h = emulated() ? 32 : 512};
  OnDevice placed(device, p, ids(p));
  placed.x.upload(random("x", bf16, {p.tokens, p.h}).bytes);
  const std::int64_t words = placed.x_perm.size_bytes() / 4;
  Buffer expected(device, placed.x_perm.size_bytes()), wrong(device, 4);
  auto view = [](const Buffer& buffer, std::int64_t count) {
    std::int64_t shape[] = {count};
    return make_view(buffer.address(), u32, shape);
  };
  View out = view(placed.x_perm, words), right = view(expected, words), sum = view(wrong, 1);
  Kernel comparison = make_comparison(device, out, sum);
  Parameters parameters;
  for (const View* each : {&out, &right, &sum})
    pack(parameters, tensor_arg(*each), *each);
  PreparedLaunch compare_words = comparison.prepare(
      {.grid = {static_cast<int>((words + 255) / 256), 1, 1}, .block = {256, 1, 1}}, parameters);
  for (DispatchVariant variant : kAllVariants) {
    placed.options.variant = variant;
    auto launch = [&] {
      fill(placed.x_perm.address(), std::byte{0xee}, placed.x_perm.size_bytes(), stream);
      moe_dispatch(stream, placed.tensors, placed.options, placed.space());
    };
    launch();
    copy_on_device(expected.address(), placed.x_perm.address(), expected.size_bytes(), stream);
    stream.synchronize();
    wrong.fill(std::byte{0});
    Graph graph = Graph::capture(stream, [&] {
      for (int i = 0; i < in_graph; ++i) {
        launch();
        compare_words.launch(stream);
      }
    });
    for (int done = 0; done < repeats; done += in_graph)
      graph.launch(stream);
    stream.synchronize();
    EXPECT_EQ(download<std::uint32_t>(wrong)[0], 0U) << "variant " << static_cast<int>(variant);
  }
}

TEST_F(MoeDispatch, RefusesWhatItCannotDispatch) {
  std::vector<Array> given = inputs({});
  EXPECT_EQ(refusal(dispatch, given),
            "moe_dispatch: option 'experts' is missing; give how many experts there are");
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
  Problem p;
  OnDevice placed(device, p, given[1]);
  auto text = [&](const MoeDispatchTensors& tensors, const Workspace& workspace) {
    try {
      plan_moe_dispatch(device.properties(), tensors, placed.options, workspace);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  MoeDispatchTensors few = placed.tensors;
  few.x_perm.shape[0] = 51;
  EXPECT_EQ(
      text(few, placed.space()),
      "moe_dispatch: x_perm is bf16[51,40]; it must have at least the 52 rows that the choices "
      "and their padding can take, and at most 2146435072");
  MoeDispatchTensors same = placed.tensors;
  same.offsets = placed.tensors.counts;
  EXPECT_EQ(text(same, placed.space()),
            "moe_dispatch: offsets is s32[16]; it must have 17 contiguous elements");
  same = placed.tensors;
  same.slot.address = placed.tensors.counts.address;
  EXPECT_EQ(text(same, placed.space()),
            "moe_dispatch: counts and slot overlap; they must be apart");
  EXPECT_EQ(text(placed.tensors, {}),
            "moe_dispatch: the workspace has 0 bytes; it needs 4224, zeroed once");
}

}  // namespace
}  // namespace tilewright
