// SPDX-License-Identifier: Apache-2.0
// Pipelines and roles as PTX, and what is refused.
#include "tilewright/pipeline.h"

#include "lang/trace_fixture.h"
#include "tilewright/bulk_copy.h"

namespace tilewright {
namespace {

using test::error_of;
using test::expect_ptx;
using test::vector_arg;

const TraceOptions kRoles{
    .name = "pipeline_roles", .target = {90, 'a'}, .block = {256, 1, 1}, .min_blocks_per_sm = 1};

TEST(Pipeline, KeepsCopiesInFlight) {
  auto kernel = [](const Tensor& x, const Tensor& y) {
    Tensor ring = shared(f32, Layout(Shape{Int(128), Int(2)}));
    Value t = thread_idx().x;
    pipeline(
        2, 8,
        [&](const Value& i, const Value& stage) { copy_async(ring(t, stage), x(i * 128 + t), 4); },
        [&](const Value&, const Value& stage) { y(0) = ring(t, stage); });
  };
  expect_ptx("pipeline", {80, '\0'}, kernel, vector_arg(f32, 1024), vector_arg(f32, 1));
}

TEST(Pipeline, FillsEmptyStages) {
  auto kernel = [](const Tensor& x) {
    Tensor ring = shared(f32, Layout(Shape{Int(32), Int(2)}), 128);
    BulkPipeline stages(2, 1);
    stages.produce(8, [&](const Value& i, const Value& stage, const Mbarrier& full) {
      full.arrive_expect_tx(128);
      bulk_load(ring(0, stage), x(i * 32), 128, full);
    });
  };
  expect_ptx("pipeline_produce", {90, '\0'}, kernel, vector_arg(f32, 1024));
}

TEST(Pipeline, ReadsFullStages) {
  auto kernel = [](const Tensor& y) {
    Tensor ring = shared(f32, Layout(Shape{Int(32), Int(2)}), 128);
    BulkPipeline stages(2, 1);
    stages.consume(
        8, [&](const Value&, const Value& stage) { y(lane_idx()) = ring(lane_idx(), stage); });
  };
  expect_ptx("pipeline_consume", {90, '\0'}, kernel, vector_arg(f32, 32));
}

TEST(Pipeline, GivesRolesToWarps) {
  auto kernel = [](const Tensor& y) {
    roles(role(4, 40, [&] { y(0) = 1.0f; }), role(4, 0, [] { grid_dependency_wait(); }));
  };
  Traced traced = trace(kRoles, kernel, vector_arg(f32, 128));
  test::expect_golden("lang/pipeline_roles.ptx", ptx::print(traced.module()));
}

TEST(Pipeline, RefusesASingleStage) {
  auto nothing = [](const Value&, const Value&) {};
  EXPECT_EQ(error_of([&] { pipeline(1, 8, nothing, nothing); }),
            "pipeline: 1 stages; with fewer than 2 nothing overlaps");
}

TEST(Pipeline, RefusesStagesThatNobodyReads) {
  EXPECT_EQ(error_of([] { BulkPipeline(2, 0); }),
            "BulkPipeline: 2 stages, 1 producer threads and 0 consumer warps; take at least 1 of "
            "each");
  EXPECT_EQ(error_of([] { BulkPipeline::of_copies(0, 32, 4); }),
            "BulkPipeline: 0 stages, 32 producer threads and 4 consumer warps; take at least 1 of "
            "each");
}

TEST(Pipeline, RefusesRolesThatDoNotFit) {
  auto nothing = [] {};
  EXPECT_EQ(error_of(kRoles, [&] { roles(role(4, 0, nothing), role(3, 0, nothing)); }),
            "roles: they have 7 warps and the block 8; every warp needs a role");
  EXPECT_EQ(error_of(kRoles, [&] { roles(role(2, 40, nothing), role(6, 0, nothing)); }),
            "roles: role 0 has 2 warps from warp 0 on; it takes at least 1, and whole warpgroups "
            "of 4 where registers are set");
  TraceOptions small = kRoles;
  small.max_registers = 128;
  EXPECT_EQ(error_of(small, [&] { roles(role(4, 40, nothing), role(4, 232, nothing)); }),
            "roles: they ask for 34816 registers, and the block begins with 32768; the increases "
            "would wait for ever: lower some");
}

TEST(Pipeline, RefusesFragmentsThatLiveAcrossARole) {
  auto within = [](const Tensor& y) {
    Fragment sums(f32, 4);
    sums.fill(0.0f);
    roles(role(8, 0, [&] { y(0) = sums[1]; }));
  };
  const char* message =
      "Fragment: 4 elements of f32 made before a role branch and used beyond it, which would keep "
      "their registers in every role; make it inside the role's body";
  EXPECT_EQ(error_of(kRoles, within, vector_arg(f32, 128)), message);
  auto after = [](const Tensor& y) {
    Fragment sums = load(y(0), 4);
    roles(role(8, 0, [] {}));
    store(y(4), sums);
  };
  EXPECT_EQ(error_of(kRoles, after, vector_arg(f32, 128)), message);
  auto good = [](const Tensor& y) {
    roles(role(8, 0, [&] { store(y(4), load(y(0), 4)); }));
    store(y(8), load(y(0), 4));
  };
  EXPECT_NO_THROW(trace(kRoles, good, vector_arg(f32, 128)));
}

}  // namespace
}  // namespace tilewright
