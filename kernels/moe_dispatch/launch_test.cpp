// SPDX-License-Identifier: Apache-2.0
// The launches of moe_dispatch: barriers, workspace, graphs, repeats, far rows, refused views.
#include "kernels/moe_dispatch/moe_dispatch.h"
#include "kernels/moe_dispatch/test_problem.h"
#include "operator_fixture.h"
#include "tilewright/atomic.h"
#include "tilewright/compile.h"
#include "tilewright/control.h"
#include "tilewright/graph.h"
#include "tilewright/thread.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace tilewright {
namespace {

using Problem = DispatchProblem;

constexpr std::array kAllVariants{DispatchVariant::replicated, DispatchVariant::decode,
                                  DispatchVariant::decode_dependent, DispatchVariant::prefill,
                                  DispatchVariant::prefill_dependent};

class MoeDispatchLaunch : public test::OperatorTest {
 protected:
  const Operator& dispatch = moe_dispatch_operator();
};

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

TEST_F(MoeDispatchLaunch, WritesRowsBeyondTwoToThe31Elements) {
  if (!emulated()) GTEST_SKIP() << "takes 4 GiB: the emulator's memory is sparse";
  constexpr std::int64_t kStride = (std::int64_t{1} << 31) + 8;
  OnDevice placed(device, {.tokens = 1, .k = 2, .experts = 2, .h = 8}, dispatch_ids(1, {1, 0}));
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

TEST_F(MoeDispatchLaunch, RefusesBarriersOfBlocksThatNeedNotBeResident) {
  Problem p{.tokens = 1500, .k = 4, .h = 8};
  OnDevice placed(device, p, dispatch_ids(p));
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

TEST_F(MoeDispatchLaunch, DeadlocksVisiblyWhereTheEmulatorIsMadeToLaunchWithoutResidentBlocks) {
  if (!emulated()) GTEST_SKIP() << "would hang a GPU";
  Problem p{.tokens = 1500, .k = 4, .h = 8};
  OnDevice placed(device, p, dispatch_ids(p));
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

TEST_F(MoeDispatchLaunch, LeavesTheWorkspaceReadyForReplaysWithOtherIds) {
  Problem p{.tokens = 300, .k = 4, .h = 8};
  for (DispatchVariant variant : kAllVariants) {
    OnDevice placed(device, p, dispatch_ids(p));
    placed.options.variant = variant;
    auto launch = [&] { moe_dispatch(stream, placed.tensors, placed.options, placed.space()); };
    launch();  // makes the kernels, which a capture must not
    Graph graph = Graph::capture(stream, launch);
    for (std::uint64_t seed : {2U, 3U}) {
      Array other = dispatch_ids(p, seed);
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
TEST_F(MoeDispatchLaunch, GivesTheSameBitsInEveryRepeat) {
  const char* text = std::getenv("TILEWRIGHT_REPEATS");
  const int repeats = text == nullptr ? 2 : std::atoi(text);
  const int in_graph = std::min(repeats, 100);
  Problem p{.tokens = emulated() ? 20 : 256, .k = 8, .experts = 32, .h = emulated() ? 32 : 512};
  OnDevice placed(device, p, dispatch_ids(p));
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

TEST_F(MoeDispatchLaunch, RefusesViewsThatDoNotFitTogether) {
  Problem p;
  OnDevice placed(device, p, dispatch_ids(p));
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
