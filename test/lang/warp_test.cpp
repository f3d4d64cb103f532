// SPDX-License-Identifier: Apache-2.0
// Warp-wide instructions as PTX, and what is refused.
#include "tilewright/warp.h"

#include "lang/trace_fixture.h"
#include "tilewright/control.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

using test::error_of;
using test::expect_ptx;
using test::vector_arg;

TEST(Warp, SpellsReductionsAndMatches) {
  auto kernel = [](const Tensor& x) {
    Value v = x(thread_idx().x).load();
    Value u = v.to(u32);
    x(0) = redux_add(v) + redux_min(v);
    x(1) = redux_max(u).to(s32) + redux_and(v);
    x(2) = redux_or(v) + redux_xor(v);
    x(3) = match_any(v).to(s32) + activemask().to(s32);
    x(4) = select(match_all(v.to(s64)), 1, 0);
  };
  expect_ptx("warp", {80, '\0'}, kernel, vector_arg(s32, 128));
}

const TraceOptions kTuned{
    .name = "warp_sm90a", .target = {90, 'a'}, .block = {128, 1, 1}, .min_blocks_per_sm = 1};

TEST(Warp, ElectsAndSetsRegisters) {
  auto kernel = [](const Tensor& x) {
    if_(warp_idx() < 2, [&] { decrease_registers(40); }).else_([] { increase_registers(232); });
    if_(elect_one(), [&] { x(0) = 1; });
  };
  Traced traced = trace(kTuned, kernel, vector_arg(s32, 1));
  test::expect_golden("lang/warp_sm90a.ptx", ptx::print(traced.module()));
}

TEST(Warp, RefusesOtherTypes) {
  EXPECT_EQ(error_of([](const Tensor& x) { redux_add(x(0)); }, vector_arg(f32, 1)),
            "redux_add: not defined for f32; it takes s32 and u32; use warp_reduce() for others");
  EXPECT_EQ(error_of([](const Tensor& x) { redux_or(x(0)); }, vector_arg(u64, 1)),
            "redux_or: not defined for u64; it takes types of 32 bits; use warp_reduce() for "
            "others");
  EXPECT_EQ(error_of([](const Tensor& x) { match_any(x(0)); }, vector_arg(f16, 1)),
            "match_any: not defined for f16; it takes types of 32 or 64 bits");
}

TEST(Warp, RefusesImpossibleRegisterCounts) {
  EXPECT_EQ(error_of(kTuned, [] { increase_registers(260); }),
            "increase_registers: 260 registers; it must be a multiple of 8 from 24 to 256");
  EXPECT_EQ(error_of(kTuned, [] { decrease_registers(44); }),
            "decrease_registers: 44 registers; it must be a multiple of 8 from 24 to 256");
  EXPECT_EQ(error_of([] { decrease_registers(40); }),
            "decrease_registers: the assembler ignores it unless it knows the registers at entry; "
            "set TraceOptions::block, and min_blocks_per_sm or max_registers");
}

TEST(Warp, RefusesPartOfAWarp) {
  auto kernel = [] { if_(thread_idx().x < 5, [] { elect_one(); }); };
  EXPECT_EQ(error_of(kernel).find("elect_one: all threads of the warp must execute it"), 0U);
}

}  // namespace
}  // namespace tilewright
