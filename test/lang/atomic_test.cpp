// SPDX-License-Identifier: Apache-2.0
// Atomics and reductions as PTX, and what is refused.
#include "tilewright/atomic.h"

#include "tilewright/thread.h"
#include "lang/trace_fixture.h"

namespace tilewright {
namespace {

using test::error_of;
using test::expect_ptx;
using test::vector_arg;

TEST(Atomic, SpellsEachOperation) {
  auto kernel = [](const Tensor& words, const Tensor& longs, const Tensor& reals) {
    Value i = thread_idx().x;
    Tensor counts = shared(u32, Layout(Shape{Int(128)}));
    red_add(words(i), atomic_add(counts(i), 1));
    red_max(words(i), atomic_min(counts(i), 7));
    red_and(words(i), atomic_or(words(i), atomic_xor(words(i), 3)));
    red_inc(words(i), atomic_dec(words(i), 100));
    red_add(longs(i), atomic_max(longs(i), -5));
    Value old = atomic_exch(reals(i), 1.5);
    red_add(reals(i), atomic_cas(reals(i), old, 2.5));
  };
  expect_ptx("atomic", {70, '\0'}, kernel, vector_arg(u32, 128), vector_arg(s64, 128),
             vector_arg(f64, 128));
}

TEST(Atomic, SpellsScopeAndOrder) {
  auto kernel = [](const Tensor& words) {
    Element flag = words(0);
    red_or(flag, 1, {Scope::sys, Order::release});
    Value old = atomic_exch(flag, 2, {Scope::cta, Order::acq_rel});
    red_add(flag, atomic_cas(flag, old, 3, {Scope::gpu, Order::acquire}));
  };
  expect_ptx("atomic_order", {70, '\0'}, kernel, vector_arg(u32, 1));
}

TEST(Atomic, AddsVectors) {
  auto kernel = [](const Tensor& reals, const Tensor& halves) {
    Value i = thread_idx().x * 8;
    Fragment four = load(reals(i), 4);
    red_add(reals(i), atomic_add(reals(i), four));
    red_add(reals(i), four.part(0, 2));
    Fragment eight = load(halves(i), 8);
    red_add(halves(i), eight);
    red_add(halves(i), eight.part(0, 2));
    red_add(halves(i), eight.at(3).get());
  };
  expect_ptx("atomic_vector", {90, '\0'}, kernel, vector_arg(f32, 1024), vector_arg(bf16, 1024));
}

TEST(Atomic, RefusesTypesItDoesNotHave) {
  EXPECT_EQ(error_of([](const Tensor& x) { atomic_min(x(0), 1.0f); }, vector_arg(f32, 1)),
            "atomic_min: not defined for f32; it takes integers of 32 or 64 bits; write a loop "
            "with atomic_cas for others");
  EXPECT_EQ(error_of([](const Tensor& x) { red_add(x(0), 1); }, vector_arg(u8, 1)),
            "red_add: not defined for u8; it takes integers of 32 or 64 bits, f16, bf16, f32 and "
            "f64");
  EXPECT_EQ(error_of([](const Tensor& x) { atomic_inc(x(0), 1); }, vector_arg(s32, 1)),
            "atomic_inc: not defined for s32; it takes u32");
  EXPECT_EQ(error_of([](const Tensor& x) { atomic_exch(x(0), 1.0f); }, vector_arg(f16, 1)),
            "atomic_exch: not defined for f16; it takes types of 32 or 64 bits");
  EXPECT_EQ(error_of([](const Tensor& x) { atomic_cas(x(0), 1, 2); }, vector_arg(u8, 1)),
            "atomic_cas: not defined for u8; it takes types of 16, 32 or 64 bits");
}

TEST(Atomic, RefusesAnAcquiringReduction) {
  auto kernel = [](const Tensor& x) { red_add(x(0), 1, {Scope::gpu, Order::acquire}); };
  EXPECT_EQ(error_of(kernel, vector_arg(u32, 1)),
            "red_add: the order is acquire, but an operation without the old value acquires "
            "nothing; use Order::relaxed or Order::release, or the atomic_ form");
}

TEST(Atomic, RefusesVectorsItDoesNotHave) {
  auto three = [](const Tensor& x) { red_add(x(0), load(x(0), 3)); };
  EXPECT_EQ(error_of(three, vector_arg(f32, 8)),
            "red_add: 3 elements of f32 to f32 in global memory; it takes 2 f16 or bf16, and in "
            "global memory 2 or 4 f32 and 4 or 8 f16 or bf16");
  auto unaligned = [](const Tensor& x) { red_add(x(1), load(x(1), 4)); };
  EXPECT_EQ(error_of(unaligned, vector_arg(f32, 8)),
            "red_add: 16 bytes at an address known to be aligned to 4; add fewer elements at a "
            "time, or give the tensor its alignment");
  auto in_shared = [](const Tensor& x) {
    red_add(shared(f32, Layout(Shape{Int(4)}))(0), load(x(0), 4));
  };
  EXPECT_EQ(error_of(in_shared, vector_arg(f32, 8)),
            "red_add: 4 elements of f32 to f32 in shared memory; it takes 2 f16 or bf16, and in "
            "global memory 2 or 4 f32 and 4 or 8 f16 or bf16");
}

TEST(Atomic, NeedsTheTargetOfItsType) {
  TraceOptions old{.name = "old", .target = {80, '\0'}, .block = {32, 1, 1}};
  try {
    trace(
        old, [](const Tensor& x) { red_add(x(0), 1.0f); }, vector_arg(bf16, 1));
    FAIL() << "sm_80 has no red.add.bf16";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_NE(error.message().find("needs sm_90 or newer"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace tilewright
