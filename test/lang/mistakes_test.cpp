// SPDX-License-Identifier: Apache-2.0
// What a kernel's author gets wrong, and what he is told when the kernel is traced: message and
// line.
#include "tilewright/control.h"
#include "tilewright/copy.h"
#include "tilewright/fragment.h"
#include "tilewright/inline_ptx.h"
#include "tilewright/mbarrier.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"
#include "tilewright/trace.h"
#include "tilewright/ue8m0.h"

#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tilewright {
namespace {

SourceLoc here(SourceLoc at = SourceLoc::here()) { return at; }

/// What the bodies have: tensors with and without known extents, numbers, this thread's index.
struct Kernel {
  const Tensor& a;  // f32 (1000):(1), aligned to 16 bytes
  const Tensor& m;  // f16 (64,64):(64,1), aligned to 16 bytes
  const Tensor& d;  // f32 (n,m):(ld,1), aligned to 4 bytes
  const Value& n;   // s32, the same in the whole grid
  const Value& x;   // f32, the same in the whole grid
  Value i = thread_idx().x;
  Var v{f32, Arg(0)};
};

struct Mistake {
  const char* name;
  SourceLoc at;
  void (*body)(Kernel& k);
  std::string_view message;
};

const Layout kThreads = make_row_major(Shape{8, 16});

// A row's mistake stands on the line of here().
// clang-format off
const Mistake kMistakes[] = {
// Types.
{"operands of two types",
 here(), [](Kernel& k) { k.n + k.x; },
 "operator+: needs s32 and got f32; convert with .to()"},
{"two literals of a select of two types",
 here(), [](Kernel& k) { select(k.n > 0, 1, 2.5f); },
 "select: the literal 2.5 does not fit type s32; write another literal, or convert the value beside it with .to()"},
{"a Var takes its own type",
 here(), [](Kernel& k) { k.v = k.n; },
 "assigning to a Var: needs f32 and got s32; convert with .to()"},
{"Vars of two types",
 here(), [](Kernel& k) { Var w(s32, Arg(1)); w = k.v; },
 "assigning to a Var: needs s32 and got f32; convert with .to()"},
{"a real literal for an integer",
 here(), [](Kernel& k) { k.n + 1.5; },
 "operator+: the literal 1.5 does not fit type s32; write another literal, or convert the value beside it with .to()"},
{"an integer literal too large for f32",
 here(), [](Kernel& k) { k.x + 16777217; },
 "operator+: the literal 16777217 does not fit type f32; write another literal, or convert the value beside it with .to()"},
{"an integer literal too large for s32",
 here(), [](Kernel& k) { k.n + 5'000'000'000; },
 "operator+: the literal 5000000000 does not fit type s32; write another literal, or convert the value beside it with .to()"},
{"a real literal that would be infinite in f16",
 here(), [](Kernel& k) { k.x.to(f16) * 100000.0; },
 "operator*: the literal 100000 does not fit type f16; write another literal, or convert the value beside it with .to()"},
{"a real literal that would be infinite in f32",
 here(), [](Kernel& k) { k.x * 1e300; },
 "operator*: the literal 1e+300 does not fit type f32; write another literal, or convert the value beside it with .to()"},
{"a truth value as a number",
 here(), [](Kernel& k) { k.n + true; },
 "operator+: the literal true does not fit type s32; write another literal, or convert the value beside it with .to()"},
{"a number as a predicate",
 here(), [](Kernel& k) { (k.n > 0) && k.n; },
 "operator&&: needs pred and got s32; compare with 0"},
{"constant() of a value",
 here(), [](Kernel& k) { constant(s32, k.n); },
 "constant: takes a literal; convert a value with .to()"},
{"constant() that does not fit",
 here(), [](Kernel&) { constant(u16, 70000); },
 "constant: the literal 70000 does not fit type u16; write another literal, or convert the value beside it with .to()"},
{"bits of a float",
 here(), [](Kernel& k) { k.x & 1; },
 "operator&: not defined for f32; it takes integers, bit types and predicates"},
{"a shift of a float",
 here(), [](Kernel& k) { k.x << 1; },
 "operator<<: not defined for f32; it takes integers and bit types of 16 to 64 bits"},
{"a shift of a byte",
 here(), [](Kernel& k) { k.n.to(u8) << 1; },
 "operator<<: not defined for u8; it takes integers and bit types of 16 to 64 bits"},
{"a shift by a 64-bit count",
 here(), [](Kernel& k) { k.n << k.n.to(s64); },
 "operator<<: not defined for s64; it takes a count of type u32 or s32"},
{"a shift by all bits",
 here(), [](Kernel& k) { k.n << 32; },
 "operator<<: a shift of s32 by 32; it takes 0 to 31"},
{"a shift backwards",
 here(), [](Kernel& k) { k.n.to(u64) >> -1; },
 "operator>>: a shift of u64 by -1; it takes 0 to 63"},
{"a negative number below which no unsigned one is",
 here(), [](Kernel& k) { if_(k.n.to(u32) > -1, [] {}); },
 "operator>: the literal -1 is below every u32; compare in a signed type, by .to()"},
{"the inverse of a predicate by ~",
 here(), [](Kernel& k) { ~(k.n > 0); },
 "operator~: not defined for pred; it takes integers and bit types"},
{"! of a number",
 here(), [](Kernel& k) { !k.n; },
 "operator!: not defined for s32; it takes a predicate; compare with 0 first"},
{"the remainder of floats",
 here(), [](Kernel& k) { k.x % 2; },
 "operator%: not defined for f32; it takes integers"},
{"the quotient of halves",
 here(), [](Kernel& k) { k.x.to(f16) / 2; },
 "operator/: not defined for f16; it takes integers, f32 and f64"},
{"an order of predicates",
 here(), [](Kernel& k) { static_cast<void>((k.n > 0) < (k.n > 1)); },
 "operator<: not defined for pred; it takes integers and floating-point types"},
{"an order of packed pairs",
 here(), [](Kernel& k) { static_cast<void>(k.n.bitcast(f16x2) < k.n.bitcast(f16x2)); },
 "operator<: not defined for f16x2; it takes integers and floating-point types"},
{"arithmetic on bytes",
 here(), [](Kernel& k) { k.n.to(u8) + 1; },
 "operator+: not defined for u8; it takes integers and floating-point types"},
{"the absolute value of an unsigned number",
 here(), [](Kernel& k) { abs(k.n.to(u32)); },
 "abs: not defined for u32; it takes signed integers and floating-point types"},
{"division by the constant 0",
 here(), [](Kernel& k) { k.n / 0; },
 "operator/: the divisor is the constant 0"},
{"remainder by the constant 0",
 here(), [](Kernel& k) { k.n % 0; },
 "operator%: the divisor is the constant 0"},
{"a wide product of 64-bit numbers",
 here(), [](Kernel& k) { mul_wide(k.n.to(s64), 2); },
 "mul_wide: not defined for s64; it takes s32 and u32"},
{"an f32 function of a half",
 here(), [](Kernel& k) { rsqrt_approx(k.x.to(f16)); },
 "rsqrt_approx: not defined for f16; it takes f32"},
{"a square root of an integer",
 here(), [](Kernel& k) { sqrt(k.n); },
 "sqrt: not defined for s32; it takes f32 and f64"},
{"NaN propagated in f64",
 here(), [](Kernel& k) { max(k.x.to(f64), 0, NanMode::propagate); },
 "max: not defined for f64; it takes f16, bf16 and f32 where NaN is propagated"},
{"a conversion to a predicate",
 here(), [](Kernel& k) { k.n.to(pred); },
 "to: no conversion from s32 to pred; compare with 0"},
{"a bitcast to another width",
 here(), [](Kernel& k) { k.n.bitcast(u64); },
 "bitcast: s32 has 32 bits and u64 has 64; convert with .to()"},
// Control flow.
{"a number as a condition",
 here(), [](Kernel& k) { if_(k.n, [] {}); },
 "if_: the condition has type s32; it must be a predicate, such as x != 0"},
{"a number as the condition of a loop",
 here(), [](Kernel& k) { while_([&] { return k.n; }, [] {}); },
 "while_: the condition has type s32; it must be a predicate, such as x != 0"},
{"a number as the condition of select",
 here(), [](Kernel& k) { select(k.n, 1, 2); },
 "select: not defined for s32; it takes a predicate as its condition"},
{"else_ after something else",
 here(), [](Kernel& k) { Else e = if_(k.n > 0, [] {}); k.v = 1; e.else_([] {}); },
 "else_: no if_ ends right before it; write if_(c, ...).else_(...) with nothing between"},
{"else_ after else_",
 here(), [](Kernel& k) { Else e = if_(k.n > 0, [] {}); e.else_([] {}); e.else_([] {}); },
 "else_: no if_ ends right before it; write if_(c, ...).else_(...) with nothing between"},
{"break_ outside of a loop",
 here(), [](Kernel&) { break_(); },
 "break_: there is no for_ or while_ around it"},
{"continue_ outside of a loop",
 here(), [](Kernel& k) { if_(k.n > 0, [] { continue_(); }); },
 "continue_: there is no for_ or while_ around it"},
{"a step of 0",
 here(), [](Kernel& k) { for_(0, k.n, 0, [](const Value&) {}); },
 "for_: the step is 0; it must be positive"},
{"a negative step",
 here(), [](Kernel& k) { for_(10, k.n, -1, [](const Value&) {}); },
 "for_: the step is -1; it must be positive"},
{"a counter that wraps before it reaches the end",
 here(), [](Kernel&) { for_(0, 2147483647, 2000000000, [](const Value&) {}); },
 "for_: the counter of type s32 would reach 4000000000, wrap and never end; count in s64"},
{"a condition computed before the loop",
 here(), [](Kernel& k) { Value c = k.v < 9; while_([&] { return c; }, [&] { k.v += 1; }); },
 "while_: the condition was computed before the loop, and stays as it is; compute it inside the function that gives it, from a Var or from memory"},
{"a loop over floats",
 here(), [](Kernel& k) { for_(k.x, [](const Value&) {}); },
 "for_: the counter has type f32; it must be s32, u32, s64 or u64"},
{"bounds of two types",
 here(), [](Kernel& k) { for_(k.n.to(s64), k.n, 1, [](const Value&) {}); },
 "for_: needs s32 and got s64; convert with .to()"},
{"a value used after the if_ that computed it",
 here(), [](Kernel& k) { std::optional<Value> y; if_(k.n > 0, [&] { y.emplace(k.x * 3); }); k.v = *y; },
 "a value of type f32 is used outside the if_, for_ or while_ body that computed it, where it may never have been computed; keep it in a Var declared before that body"},
{"a loop's index used after the loop",
 here(), [](Kernel& k) { std::optional<Value> y; for_(k.n, [&](const Value& i) { y.emplace(i); }); *y * 2; },
 "a value of type s32 is used outside the if_, for_ or while_ body that computed it, where it may never have been computed; keep it in a Var declared before that body"},
{"a thread's value in a Var promised to the block",
 here(), [](Kernel& k) { Var w(k.n, Uniformity::block); w = k.i; },
 "assigning to a Var that was promised to be the same in the whole block: the value or the control flow here differs between threads; declare the Var without that promise, or make the value uniform"},
{"a promised Var assigned by some threads",
 here(), [](Kernel& k) { Var w(k.n, Uniformity::block); if_(k.i > 3, [&] { w = 1; }); },
 "assigning to a Var that was promised to be the same in the whole block: the value or the control flow here differs between threads; declare the Var without that promise, or make the value uniform"},
// Threads that meet.
{"a barrier that some threads pass by",
 here(), [](Kernel& k) { if_(k.i < 5, [] { barrier(); }); },
 "barrier: all threads of the block must execute it, but it stands under a condition that differs between threads; move it out of that if_ or loop, or make the condition uniform (a Var takes Uniformity::block or warp)"},
{"a barrier that some warps pass by",
 here(), [](Kernel&) { if_(warp_idx() == 0, [] { barrier(); }); },
 "barrier: all threads of the block must execute it, but it stands under a condition that differs between warps; move it out of that if_ or loop, or make the condition uniform (a Var takes Uniformity::block or warp)"},
{"a barrier after some threads have returned",
 here(), [](Kernel& k) { if_(k.i < 5, [] { return_(); }); barrier(); },
 "barrier: all threads of the block must execute it, but it stands under a condition that differs between threads; move it out of that if_ or loop, or make the condition uniform (a Var takes Uniformity::block or warp)"},
{"a barrier in a loop that threads leave alone",
 here(), [](Kernel& k) { for_(k.n, [&](const Value& j) { if_(j == k.i, [] { break_(); }); barrier(); }); },
 "barrier: all threads of the block must execute it, but it stands under a condition that differs between threads; move it out of that if_ or loop, or make the condition uniform (a Var takes Uniformity::block or warp)"},
{"a named barrier of a part of a warp",
 here(), [](Kernel&) { named_barrier(48); },
 "named_barrier: a group of 48 threads at barrier 1 in a block of 128; take a multiple of 32 threads, at most the block, and barriers 0 to 15"},
{"a named barrier of more threads than the block",
 here(), [](Kernel&) { named_barrier(256); },
 "named_barrier: a group of 256 threads at barrier 1 in a block of 128; take a multiple of 32 threads, at most the block, and barriers 0 to 15"},
{"a sixteenth named barrier",
 here(), [](Kernel&) { for (int i = 0; i < 16; ++i) named_barrier(64); },
 "named_barrier: the block's 15 named barriers are taken; reuse one whose threads have all passed"},
{"a barrier that does not exist",
 here(), [](Kernel&) { barrier({64, 16}); },
 "barrier: a group of 64 threads at barrier 16 in a block of 128; take a multiple of 32 threads, at most the block, and barriers 0 to 15"},
{"an arrival of nobody knows how many",
 here(), [](Kernel&) { barrier_arrive({0, 1}); },
 "barrier_arrive: the group must say how many threads meet; use named_barrier()"},
{"a warp barrier of no lane",
 here(), [](Kernel&) { warp_barrier(0); },
 "warp_barrier: the mask of lanes is 0; name the lanes that meet"},
{"a shuffle that some lanes pass by",
 here(), [](Kernel& k) { if_(lane_idx() < 5, [&] { shuffle_xor(k.x, 1); }); },
 "shuffle_xor: all threads of the warp must execute it, but it stands under a condition that differs between threads; move it out of that if_ or loop, or make the condition uniform (a Var takes Uniformity::block or warp)"},
{"a vote that some lanes pass by",
 here(), [](Kernel& k) { if_(lane_idx() < 5, [&] { vote_any(k.n > 0); }); },
 "vote_any: all threads of the warp must execute it, but it stands under a condition that differs between threads; move it out of that if_ or loop, or make the condition uniform (a Var takes Uniformity::block or warp)"},
{"a width that is no power of two",
 here(), [](Kernel& k) { shuffle_down(k.x, 1, 12); },
 "shuffle_down: the width is 12; it must be 1, 2, 4, 8, 16 or 32"},
{"a lane mask beyond the warp",
 here(), [](Kernel& k) { shuffle_xor(k.x, 32); },
 "shuffle_xor: the lane mask is 32; it must be 0 to 31"},
{"a lane mask beyond the segment",
 here(), [](Kernel& k) { shuffle_xor(k.x, 8, 8); },
 "shuffle_xor: the lane mask is 8; it must be 0 to 7"},
{"a shuffle of a predicate",
 here(), [](Kernel& k) { shuffle_xor(k.n > 0, 1); },
 "shuffle_xor: not defined for pred; it takes types of 16, 32 or 64 bits"},
{"a lane of type f32",
 here(), [](Kernel& k) { shuffle(k.n, k.x); },
 "shuffle: the source lane has type f32; it must be s32 or u32"},
{"a ballot of numbers",
 here(), [](Kernel& k) { ballot(k.n); },
 "ballot: needs pred and got s32; compare with 0"},
{"waiting for -1 groups",
 here(), [](Kernel&) { cp_async_wait(-1); },
 "cp_async_wait: -1 groups; it must be 0 or more"},
// Tensors and memory.
{"a coordinate of too few indices",
 here(), [](Kernel& k) { k.d.element(coord(1, 2, 3)).load(); },
 "tensor: coordinate (1,2,3) does not fit shape (?,?); give one index for each mode, or a single linear one"},
{"a coordinate of too many indices",
 here(), [](Kernel& k) { k.a(1, 2).load(); },
 "tensor: coordinate (1,2) does not fit shape (1000); give one index for each mode, or a single linear one"},
{"a coordinate outside of the shape",
 here(), [](Kernel& k) { k.m(0, 64).load(); },
 "tensor: coordinate (0,64) lies outside of shape (64,64); indices count from 0"},
{"a coordinate below 0",
 here(), [](Kernel& k) { k.m(-1, 0).load(); },
 "tensor: coordinate (-1,0) lies outside of shape (64,64); indices count from 0"},
{"an index known to be outside",
 here(), [](Kernel& k) { k.a(k.i + 1000).load(); },
 "tensor: coordinate (?) lies outside of shape (1000); indices count from 0"},
{"a slice outside of the shape",
 here(), [](Kernel& k) { k.m(64, _); },
 "tensor: coordinate (64,_) lies outside of shape (64,64); indices count from 0"},
{"a tile of another rank than the tensor's",
 here(), [](Kernel& k) { local_tile(k.m, {8, 8, 8}, coord(0, 0, 0)); },
 "local_tile: the tile (8,8,8) has more modes than the tensor's (64,64); give one extent a mode"},
{"a tile beyond the last",
 here(), [](Kernel& k) { local_tile(k.m, {16, 64}, coord(k.i + 4, 0)); },
 "local_tile: the coordinate (?,0) lies outside: mode 0 of (64,64) has 4 tiles of 16; they count from 0"},
{"a second tile where one covers all",
 here(), [](Kernel& k) { local_tile(k.m, {64, 128}, coord(0, 1)); },
 "local_tile: the coordinate (0,1) lies outside: mode 1 of (64,64) has 1 tile of 128; they count from 0"},
{"a mbarrier beyond the last",
 here(), [](Kernel&) { Mbarriers full(2); full[2].arrive(); },
 "tensor: coordinate (2) lies outside of shape (2); indices count from 0"},
{"a float as an index",
 here(), [](Kernel& k) { k.a(k.x).load(); },
 "coordinate: a value of type f32 is no index; convert it with .to(s32)"},
{"a store of another type",
 here(), [](Kernel& k) { k.m(0, 0) = k.x; },
 "store: needs f16 and got f32; convert with .to()"},
{"a store of a literal that does not fit",
 here(), [](Kernel& k) { k.m(0, 0) = 1e6; },
 "store: the literal 1000000 does not fit type f16; write another literal, or convert the value beside it with .to()"},
{"a fragment stored to another type",
 here(), [](Kernel& k) { store(k.m(0, 0), load(k.a(0), 4)); },
 "store: the fragment has type f32 and the tensor f16; convert with .to()"},
{"a read-only volatile load",
 here(), [](Kernel& k) { load(k.a(0), 1, {.cache = Cache::volatile_, .read_only = true}); },
 "load: read_only promises that nothing writes the bytes, volatile_ that something does; choose one"},
{"shared memory of dynamic shape",
 here(), [](Kernel& k) { shared(f32, make_row_major(Shape{to_int(k.n), 4})); },
 "shared: the layout (?,4):(4,1) has dynamic parts; shared memory needs a static layout, of host numbers"},
{"shared memory of predicates",
 here(), [](Kernel&) { shared(pred, make_row_major(Shape{64})); },
 "shared: elements of type pred are not addressable; use a type of 4 bits or more"},
{"an element within a byte",
 here(), [](Kernel&) { shared(e2m1, make_row_major(Shape{64}))(1).load(); },
 "load: elements of type e2m1 are not addressable one by one; use a type of 8 to 64 bits, or load() and store() of several elements of 4 bits"},
{"elements from within a byte on",
 here(), [](Kernel&) { load(shared(u4, make_row_major(Shape{64}))(thread_idx().x), 4); },
 "memory access: an offset of ? elements of u4 may lie within a byte; use one that is known to be even, by its strides and tiles or by assume({.divisor = 2})"},
{"elements to within a byte",
 here(), [](Kernel&) { load(shared(s4, make_row_major(Shape{64}))(0), 3); },
 "load: 3 elements of type s4 end within a byte; take an even number"},
{"a scale without its rounding",
 here(), [](Kernel&) { constant(f32, 1.0).to(ue8m0); },
 "to: no conversion from f32 to ue8m0; which power of two it shall be is said by to_ue8m0(x, PowerRounding)"},
{"a scale from f16",
 here(), [](Kernel&) { to_ue8m0(constant(f16, 1.0), PowerRounding::up); },
 "to_ue8m0: not defined for f16; it takes f32, convert with .to(f32)"},
{"a conversion that would round twice",
 here(), [](Kernel&) { constant(f64, 1.0).to(e4m3); },
 "to: no conversion from f64 to e4m3; it would round twice: convert to f32 first"},
{"a nibble from too wide an integer",
 here(), [](Kernel& k) { k.n.to(s64).to(s4); },
 "to: no conversion from s64 to s4; convert to s32 first"},
{"recast to what does not fit",
 here(), [](Kernel&) { Fragment(u8, 6).recast(f32); },
 "recast: 6 elements of u8 are 48 bits, not whole elements of f32 in the same registers"},
{"more shared memory than a block has statically",
 here(), [](Kernel&) { shared(f32, make_row_major(Shape{1024, 10})); shared(f32, make_row_major(Shape{1024, 3})); },
 "shared: 12288 bytes beside 40960 that are taken; a block has 49152 bytes of static shared memory, use dynamic_shared() for more"},
{"an alignment that is no power of two",
 here(), [](Kernel&) { shared(f32, make_row_major(Shape{64}), 24); },
 "shared: the alignment is 24 bytes; it must be a power of two"},
{"more dynamic shared memory than a block can have",
 here(), [](Kernel&) { dynamic_shared(f32, make_row_major(Shape{256, 227}), 1024); },
 "dynamic_shared: the tensor ends at byte 233472; a block has at most 232448 bytes of shared memory"},
{"dynamic shared memory of dynamic shape",
 here(), [](Kernel& k) { dynamic_shared(f32, make_row_major(Shape{to_int(k.n)})); },
 "dynamic_shared: the layout (?):(1) has dynamic parts; shared memory needs a static layout, of host numbers"},
{"an offset that splits an element",
 here(), [](Kernel&) { dynamic_shared(f32, make_row_major(Shape{64}), 6); },
 "dynamic_shared: offset 6 bytes; it must be a multiple of the 4 bytes of f32"},
// Fragments.
{"an element beyond the fragment",
 here(), [](Kernel&) { Fragment f(f32, 4); f[4] = 1; },
 "Fragment: element 4 of 4; indices are constants from 0"},
{"an element before the fragment",
 here(), [](Kernel&) { Fragment f(f32, 4); f[-1].get(); },
 "Fragment: element -1 of 4; indices are constants from 0"},
{"a fragment of nothing",
 here(), [](Kernel&) { Fragment f(f32, 0); },
 "Fragment: 0 elements of type f32; it takes one or more elements of 4 to 64 bits"},
{"a fragment of predicates",
 here(), [](Kernel&) { Fragment f(pred, 4); },
 "Fragment: 4 elements of type pred; it takes one or more elements of 4 to 64 bits"},
{"an element of another type",
 here(), [](Kernel& k) { Fragment f(f16, 4); f[0] = k.x; },
 "Fragment: needs f16 and got f32; convert with .to()"},
{"fragments of two sizes",
 here(), [](Kernel&) { Fragment f(f32, 4); f.assign(Fragment(f32, 8)); },
 "assign: the fragments have 4 and 8 elements; they must be equal"},
{"fragments of two types",
 here(), [](Kernel&) { Fragment f(f32, 4); f.assign(Fragment(s32, 4)); },
 "assign: the fragments have types f32 and s32; convert with .to()"},
{"a sum of fragments of two sizes",
 here(), [](Kernel&) { Fragment f(f32, 4); zip_map(f, Fragment(f32, 2), [](const Value& a, const Value& b) { return a + b; }); },
 "Fragment: element 2 of 2; indices are constants from 0"},
{"a part that splits a word",
 here(), [](Kernel&) { Fragment f(f16, 8); f.part(1, 2); },
 "part: elements 1 to 2 of 8; take elements inside, in words of 2"},
{"a part beyond the end",
 here(), [](Kernel&) { Fragment f(f32, 8); f.part(6, 4); },
 "part: elements 6 to 9 of 8; take elements inside, in words of 1"},
// Copies.
{"an asynchronous copy of 6 bytes",
 here(), [](Kernel& k) { Tensor s = shared(f16, make_row_major(Shape{64})); copy_async(s(0), k.m(0, 0), 6); },
 "copy_async: 6 bytes from global to shared memory; cp.async copies 4, 8 or 16 bytes from global to shared memory"},
{"an asynchronous copy to global memory",
 here(), [](Kernel& k) { copy_async(k.a(0), k.a(4), 16); },
 "copy_async: 16 bytes from global to global memory; cp.async copies 4, 8 or 16 bytes from global to shared memory"},
{"an asynchronous copy at odd addresses",
 here(), [](Kernel& k) { Tensor s = shared(f32, make_row_major(Shape{64})); copy_async(s(0), k.a(k.i), 16); },
 "copy_async: 16 bytes at addresses known to be aligned to 4; copy fewer bytes at a time, or give the tensor its alignment"},
{"copies of 3 bytes",
 here(), [](Kernel&) { tiled_copy(Universal{24}, f16, kThreads, Shape{1, 8}); },
 "tiled_copy: 24-bit copies of 8 values of type f16 a thread; the bits must be 8 to 128 and a multiple of the type's, the values a multiple of a copy's"},
{"copies of more than 16 bytes",
 here(), [](Kernel&) { tiled_copy(Universal{256}, f16, kThreads, Shape{1, 16}); },
 "tiled_copy: 256-bit copies of 16 values of type f16 a thread; the bits must be 8 to 128 and a multiple of the type's, the values a multiple of a copy's"},
{"asynchronous copies of 2 bytes",
 here(), [](Kernel&) { tiled_copy(CpAsync{16}, f16, kThreads, Shape{1, 8}); },
 "tiled_copy: 16-bit copies of 8 values of type f16 a thread; the bits must be 32, 64 or 128 and a multiple of the type's, the values a multiple of a copy's"},
{"fewer values than a copy moves",
 here(), [](Kernel&) { tiled_copy(Universal{128}, f16, kThreads, Shape{1, 4}); },
 "tiled_copy: 128-bit copies of 4 values of type f16 a thread; the bits must be 8 to 128 and a multiple of the type's, the values a multiple of a copy's"},
{"a tile that the threads do not divide",
 here(), [](Kernel& k) { copy(tiled_copy(Universal{128}, f16, kThreads, Shape{1, 8}), k.m, k.m); },
 "copy: the tile (64,64):(64,1) is not a multiple of the (8,128) elements that the copy's threads cover; choose a tile of whole multiples"},
{"vectors across the contiguous mode",
 here(), [](Kernel& k) { copy(tiled_copy(Universal{64}, f16, kThreads, Shape{4, 1}), k.m, k.m); },
 "copy: the tensor has values 4:64 a thread, of which 4 are not contiguous as the 64-bit copy needs; lay the values along the contiguous mode or copy fewer bits"},
{"tiles of two sizes",
 here(), [](Kernel& k) { copy(tiled_copy(Universal{16}, f16, kThreads, Shape{1, 1}), k.m, shared(f16, make_row_major(Shape{8, 16}))); },
 "copy: source has 4096 elements but destination has 128; use equal tiles or copy_if"},
{"a copy that would convert",
 here(), [](Kernel& k) { copy(tiled_copy(Universal{16}, f16, kThreads, Shape{1, 1}), k.m, shared(f32, make_row_major(Shape{64, 64}))); },
 "copy: types f16, f32 and the copy's f16 differ; copies do not convert"},
{"a copy for other threads than the block's",
 here(), [](Kernel& k) { copy(tiled_copy(Universal{16}, f16, make_row_major(Shape{4, 8}), Shape{1, 1}), k.m, k.m); },
 "copy: the copy is for 32 threads and the block has 128; make them equal or use partition()"},
{"a tile of another rank",
 here(), [](Kernel& k) { in_bounds(k.d, Shape{16}, coord(0)); },
 "in_bounds: the tensor has shape (?,?), the tile (16) and the coordinate (0); they need the same rank, and the tile a static shape"},
{"a tile coordinate of another rank",
 here(), [](Kernel& k) { local_tile(k.d, Shape{16, 16}, coord(0, 0, 0)); },
 "local_tile: the coordinate (0,0,0) has more entries than there are modes in (?,?)"},
// Inline PTX.
{"an instruction that does not exist",
 here(), [](Kernel&) { inline_ptx("frobnicate.b32 $0, 1;", {u32}, {}); },
 "inline_ptx: unknown instruction 'frobnicate'"},
{"an operand too many",
 here(), [](Kernel& k) { inline_ptx("add.s32 $0, $1, $2;", {s32}, {k.n}); },
 "inline_ptx: $2 but there are 2 results and arguments; they count from $0"},
{"an instruction of a later device",
 here(), [](Kernel& k) { inline_ptx("add.rn.f32x2 $0, $1, $1;", {b64}, {k.n.to(u64)}); },
 "inline_ptx: add.rn.f32x2 needs sm_100 or newer (PTX 8.6); the module's target is sm_90a"},
{"a register of the wrong width",
 here(), [](Kernel& k) { inline_ptx("add.s32 $0, $1, 1;", {s32}, {k.n.to(s64)}); },
 "inline_ptx: add.s32: operand 2 is register %tilewright_operand1 of type b64; it must be of type s32"},
{"a variable of its own",
 here(), [](Kernel&) { inline_ptx(".shared .b32 s; mov.u32 $0, s;", {u32}, {}); },
 "inline_ptx: the text declares the variable s; only registers may be declared, use shared() for memory"},
};
// clang-format on

Traced trace_body(const TraceOptions& options, void (*body)(Kernel& k)) {
  TensorArg a{f32, Shape{1000}, Stride{1}, 16};
  TensorArg m{f16, Shape{64, 64}, Stride{64, 1}, 16};
  Int any = Int::symbol(0, {1, 0, 1 << 30});
  TensorArg d{f32, Shape{any, any}, Stride{any, 1}, 4};
  auto call = [&](const Tensor& ta, const Tensor& tm, const Tensor& td, const Value& n,
                  const Value& x) {
    Kernel kernel{ta, tm, td, n, x};
    body(kernel);
  };
  return trace(options, call, a, m, d, ScalarArg{s32, {}}, ScalarArg{f32, {}});
}

template <class F>
void expect_mistake(const char* name, SourceLoc at, std::string_view message, F&& make) {
  SCOPED_TRACE(name);
  try {
    make();
    ADD_FAILURE() << "not caught";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), message);
    EXPECT_EQ(base_name(error.where().file), "mistakes_test.cpp");
    EXPECT_EQ(error.where().line, at.line);
  }
}

TEST(Mistakes, AreToldWithTheirLine) {
  for (const Mistake& m : kMistakes) {
    expect_mistake(m.name, m.at, m.message, [&] { trace_body({.block = {128, 1, 1}}, m.body); });
  }
}

/// Mistakes of the call of trace(), or that only some targets and blocks make mistakes.
struct OptionsMistake {
  const char* name;
  SourceLoc at;
  TraceOptions options;
  void (*body)(Kernel& k);
  std::string_view message;
};

void nothing(Kernel&) {}

// clang-format off
const OptionsMistake kOptionsMistakes[] = {
{"a name that is no word",
 here(), {.name = "my kernel", .at = here()}, nothing,
 "trace: 'my kernel' is no kernel name; use letters, digits and underscores"},
{"a name that begins with a digit",
 here(), {.name = "3d_copy", .at = here()}, nothing,
 "trace: '3d_copy' is no kernel name; use letters, digits and underscores"},
{"more than 1024 threads",
 here(), {.block = {64, 32, 1}, .at = here()}, nothing,
 "trace: a block of (64,32,1) threads; it has at most 1024, of which 64 in z, and x = 0 where it is not known"},
{"more than 64 threads in z",
 here(), {.block = {1, 1, 128}, .at = here()}, nothing,
 "trace: a block of (1,1,128) threads; it has at most 1024, of which 64 in z, and x = 0 where it is not known"},
{"a block of no rows",
 here(), {.block = {128, 0, 1}, .at = here()}, nothing,
 "trace: a block of (128,0,1) threads; it has at most 1024, of which 64 in z, and x = 0 where it is not known"},
{"a cluster of 32 blocks",
 here(), {.block = {128, 1, 1}, .cluster = {32, 1, 1}, .at = here()}, nothing,
 "trace: a cluster of (32,1,1) blocks; it has 1 to 16"},
{"a cluster without one extent",
 here(), {.block = {128, 1, 1}, .cluster = {2, 1, 0}, .at = here()}, nothing,
 "trace: a cluster of (2,1,0) blocks; it has 1 to 16"},
{"more registers than a thread can have",
 here(), {.block = {128, 1, 1}, .max_registers = 256, .at = here()}, nothing,
 "trace: max_registers is 256 and min_blocks_per_sm 0; they must be 0 (free) or positive, registers at most 255"},
{"tanh before sm_75",
 here(), {.target = {70, 0}, .block = {128, 1, 1}}, [](Kernel& k) { tanh_approx(k.x); },
 "tanh.approx.f32 needs sm_75 or newer (PTX 7.0); the module's target is sm_70"},
{"asynchronous copies before sm_80",
 here(), {.target = {75, 0}, .block = {128, 1, 1}}, [](Kernel&) { cp_async_commit(); },
 "cp.async.commit_group needs sm_80 or newer (PTX 7.0); the module's target is sm_75"},
{"fences of a cluster before sm_90",
 here(), {.target = {80, 0}, .block = {128, 1, 1}}, [](Kernel&) { fence(Scope::cluster); },
 "'.cluster' of fence.acq_rel.cluster needs sm_90 or newer (PTX 7.8); the module's target is sm_80"},
{"dependent launches before sm_90",
 here(), {.target = {86, 0}, .block = {128, 1, 1}}, [](Kernel&) { grid_dependency_wait(); },
 "griddepcontrol.wait needs sm_90 or newer (PTX 7.8); the module's target is sm_86"},
{"sums of bf16 before sm_90",
 here(), {.target = {80, 0}, .block = {128, 1, 1}}, [](Kernel& k) { k.x.to(bf16) + k.x.to(bf16); },
 "add.rn.bf16 needs sm_90 or newer (PTX 7.8); the module's target is sm_80"},
{"the rank in a cluster before sm_90",
 here(), {.target = {80, 0}, .block = {128, 1, 1}}, [](Kernel& k) { k.v = cluster_rank().to(f32); },
 "%cluster_ctarank needs sm_90 or newer (PTX 7.8); the module's target is sm_80"},
{"the linear index in a block of unknown shape",
 here(), {}, [](Kernel&) { linear_thread_idx(); },
 "block_threads: the trace does not know the block's shape; set TraceOptions::block"},
{"the warp's index in a block of unknown shape",
 here(), {}, [](Kernel&) { warp_idx(); },
 "block_threads: the trace does not know the block's shape; set TraceOptions::block"},
{"a copy by a block of unknown shape",
 here(), {}, [](Kernel& k) { copy(tiled_copy(Universal{16}, f16, kThreads, Shape{1, 1}), k.m, k.m); },
 "block_threads: the trace does not know the block's shape; set TraceOptions::block"},
};
// clang-format on

TEST(Mistakes, OfOptionsAndTargetsAreToldWithTheirLine) {
  for (const OptionsMistake& m : kOptionsMistakes) {
    expect_mistake(m.name, m.at, m.message, [&] { trace_body(m.options, m.body); });
  }
}

// here() stands on the line of the mistake.
// clang-format off
TEST(Mistakes, OfCallingOutsideOfATraceAreTold) {
  const std::string why = ": no kernel is being traced; call it inside the body passed to trace()";
  Layout four = make_row_major(Shape{4});
  expect_mistake("an index", here(), "thread_idx" + why, [] { thread_idx(); });
  expect_mistake("a Var", here(), "Var" + why, [] { Var v(f32); });
  expect_mistake("shared memory", here(), "shared" + why, [&] { shared(f32, four); });
}

TEST(Mistakes, OfMixingTracesAreTold) {
  const TraceOptions options{.block = {32, 1, 1}};
  expect_mistake("a trace in a trace", options.at,
                 "trace: a kernel is being traced on this thread already; trace one after the other",
                 [&] { trace(options, [&] { trace(options, [] {}); }); });
  std::optional<Value> kept;
  trace(options, [&] { kept.emplace(Arg(thread_idx().x) * 3); });
  std::string_view message = "a value of type s32 comes from an earlier trace; "
                             "compute it inside the body that uses it";
  expect_mistake("a value", here(), message, [&] { trace(options, [&] { *kept * 3; }); });
}
// clang-format on

template <std::size_t... I>
void trace_numbers(const TraceOptions& options, std::index_sequence<I...>) {
  auto number = [](std::size_t) { return ScalarArg{f64, {}}; };
  trace(
      options, [](const auto&...) {}, number(I)...);
}

TEST(Mistakes, OfTooManyParametersAreTold) {
  const TraceOptions options{.target = {60, 0}, .block = {32, 1, 1}};
  auto make = [&] { trace_numbers(options, std::make_index_sequence<513>()); };
  expect_mistake("513 numbers of 8 bytes", options.at,
                 "trace: the arguments need 4104 bytes of parameters; sm_60 has 4096, pass a table "
                 "in memory",
                 make);
}

TEST(Mistakes, OfAParametersTypeAreTold) {
  const TraceOptions options{.name = "f", .block = {32, 1, 1}};
  expect_mistake("tf32", options.at,
                 "argument 0 of f: no parameter has type tf32; give an integer, f16, bf16, f32, "
                 "f64, a pair, or the bits as b8 to b64",
                 [&] {
                   trace(
                       options, [](const Value&) {}, ScalarArg{tf32, {}});
                 });
}

}  // namespace
}  // namespace tilewright
