// SPDX-License-Identifier: Apache-2.0
// Out-of-line functions and included PTX as text, and what is refused.
#include "tilewright/function.h"

#include "lang/trace_fixture.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <functional>

namespace tilewright {
namespace {

using test::error_of;
using test::expect_ptx;
using test::vector_arg;

constexpr const char* kHash = R"(.version 7.0
.target sm_70
.address_size 64
.const .b32 seed = 77;
.visible .func (.param .b32 out) hash(.param .b32 x, .param .b32 y)
{
  .reg .b32 %r<4>;
  ld.param.b32 %r0, [x];
  ld.param.b32 %r1, [y];
  ld.const.b32 %r2, [seed];
  mad.lo.s32 %r3, %r0, %r1, %r2;
  st.param.b32 [out], %r3;
  ret;
}
)";

Value clamped(const Value& x, const Value& most) {
  Var y(x);
  if_(x > most, [&] { y = most; });
  return y;
}

TEST(Function, IsEmittedOnceAndCalledWithParameters) {
  auto kernel = [](const Tensor& x) {
    Value i = thread_idx().x;
    auto clamp = function_("clamp", clamped, f32, f32);
    auto twice = function_(
        "twice",
        [](const Value& v) {
          return std::vector<Value>{v + v, v.to(f32)};
        },
        s32);
    x(i) = clamp(clamp(x(i).load(), 5), twice(i)[1]);
  };
  expect_ptx("function", {90, 'a'}, kernel, vector_arg(f32, 128));
}

TEST(Function, CallsIncludedPtx) {
  auto kernel = [](const Tensor& x) {
    include_ptx(kHash);
    include_ptx(kHash);  // adds nothing
    auto hash = extern_function("hash", u32, u32, u32);
    x(thread_idx().x) = hash(thread_idx().x.to(u32), 3);
  };
  expect_ptx("include_ptx", {90, 'a'}, kernel, vector_arg(u32, 128));
}

TEST(Function, DeclaresWhatLinkingAdds) {
  auto kernel = [](const Tensor& x) {
    auto store = extern_function("store_it", NoResult{}, u64, f32);
    store(x(thread_idx().x).address(), 1.5);
  };
  TraceOptions options{.name = "k", .block = {32, 1, 1}};
  Traced traced = trace(options, kernel, vector_arg(f32, 128));
  const ptx::Function& declared = traced.module().functions.front();
  EXPECT_EQ(declared.name, "store_it");
  EXPECT_TRUE(declared.declaration);
  EXPECT_EQ(declared.linkage, ptx::Linkage::extern_);
  EXPECT_EQ(declared.params.size(), 2u);
}

TEST(Function, OfTheSameNameAndBodyIsOne) {
  auto kernel = [](const Tensor& x) {
    for (int i = 0; i < 2; ++i)
      x(i) = function_("clamp", clamped, f32, f32)(x(i).load(), 2);
  };
  TraceOptions options{.name = "k", .block = {32, 1, 1}};
  Traced traced = trace(options, kernel, vector_arg(f32, 128));
  EXPECT_EQ(traced.module().functions.size(), 2u);
}

struct Mistake {
  const char* name;
  std::function<void(const Tensor& x)> body;
  std::string_view message;
};

const Mistake kMistakes[] = {
    {"another body under the name",
     [](const Tensor&) {
       auto add = [](int n) {
         function_(
             "f", [&](const Value& v) { return v + n; }, s32);
       };
       add(1);
       add(2);
     },
     "function_: 'f' is defined already, with other code; give each specialisation its own name"},
    {"a value of the kernel in the body",
     [](const Tensor& x) {
       Value y = x(0).load();
       function_(
           "f", [&](const Value& v) { return v * y; }, f32);
     },
     "a value of type f32 comes from outside the function_ 'f'; pass it as an argument"},
    {"a Var of the kernel in the body",
     [](const Tensor&) {
       Var y(f32, 0);
       function_(
           "f", [&](const Value& v) { y = v; }, f32);
     },
     "a Var or Fragment of another function; pass its value as an argument, or return it as a "
     "result"},
    {"a value of the body in the kernel",
     [](const Tensor& x) {
       std::vector<Value> kept;
       function_(
           "f", [&](const Value& v) { kept.push_back(v + 1); }, f32);
       x(0) = kept[0];
     },
     "a value of type f32 is used outside the if_, for_ or while_ body that computed it, where it "
     "may never have been computed; keep it in a Var declared before that body"},
    {"a barrier in the body", [](const Tensor&) { function_("f", [] { barrier(); }); },
     "barrier: stands in the function_ 'f', which any of a warp's threads may call; use a C++ "
     "function, which is inlined"},
    {"return_ in the body", [](const Tensor&) { function_("f", [] { return_(); }); },
     "return_: ends the thread, and stands in the function_ 'f'; return from its body, with what "
     "a branch decides in a Var"},
    {"a predicate as a parameter",
     [](const Tensor&) {
       function_(
           "f", [](const Value&) {}, pred);
     },
     "function_: parameter 0 of 'f' has type pred; it must have 16, 32 or 64 bits: select(p, 1, "
     "0) makes a number of a predicate"},
    {"a byte as a result",
     [](const Tensor&) {
       function_(
           "f", [](const Value& v) { return v.to(u8); }, s32);
     },
     "function_: result 0 of 'f' has type u8; it must have 16, 32 or 64 bits: select(p, 1, 0) "
     "makes a number of a predicate"},
    {"no name", [](const Tensor&) { function_("my f", [] {}); },
     "function_: 'my f' is no name; use letters, digits and underscores"},
    {"an argument of another type",
     [](const Tensor& x) {
       function_(
           "f", [](const Value&) {}, s32)(x(0).load());
     },
     "argument 0 of 'f': needs s32 and got f32; convert with .to()"},
    {"a signature that the text does not have",
     [](const Tensor&) {
       include_ptx(kHash);
       extern_function("hash", u64, u32);
     },
     "extern_function: hash is declared as (32 bits) -> (64 bits) and the PTX text has (32 bits, "
     "32 bits) -> (32 bits); declare what the text has, whose arguments must be .param numbers"},
    {"another function of the name in the text",
     [](const Tensor&) {
       function_(
           "hash", [](const Value&) {}, s32);
       include_ptx(kHash);
     },
     "include_ptx: 'hash' is in the kernel already and means something else; rename it"},
    {"an entry in the text",
     [](const Tensor&) { include_ptx(".version 7.0 .target sm_70 .entry e() { ret; }"); },
     "include_ptx: the text has the entry 'e'; a kernel takes functions (.func) only, launch "
     "entries with load_ptx"},
    {"an unknown instruction in the text",
     [](const Tensor&) { include_ptx(".version 7.0 .target sm_70\n.func e() { foo.bar; }"); },
     "include_ptx: line 2: unknown instruction 'foo'"},
    {"an instruction that the target lacks",
     [](const Tensor&) {
       include_ptx(".version 8.6 .target sm_100a .func e() { tcgen05.wait::ld.sync.aligned; }");
     },
     "the module's target is sm_90a"},
};

TEST(Function, MistakesAreRefusedWithTheLine) {
  for (const Mistake& mistake : kMistakes) {
    std::string text = error_of(mistake.body, vector_arg(f32, 128));
    EXPECT_NE(text.find(mistake.message), text.npos) << mistake.name << ": " << text;
  }
}

TEST(Function, OfAnotherTraceIsRefused) {
  std::vector<Function<void>> kept;
  TraceOptions options{.name = "k", .block = {32, 1, 1}};
  trace(options, [&] { kept.push_back(function_("f", [] {})); });
  EXPECT_EQ(error_of([&] { kept[0](); }),
            "function_: 'f' belongs to another trace; define it inside the body that calls it");
}

TEST(Function, ThatFailsLeavesTheKernelAsItWas) {
  auto kernel = [](const Tensor& x) {
    try {
      function_(
          "f", [](const Value& v) { if_(v > 0, [&] { v + 1.5f; }); }, s32);
    } catch (const Error&) {
      x(0) = 1;
    }
  };
  TraceOptions options{.name = "k", .block = {32, 1, 1}};
  Traced traced = trace(options, kernel, vector_arg(f32, 128));
  EXPECT_EQ(traced.module().functions.size(), 1u);
}

}  // namespace
}  // namespace tilewright
