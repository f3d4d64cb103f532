// SPDX-License-Identifier: Apache-2.0
// printf and assertions as PTX, and what is refused.
#include "tilewright/debugging.h"

#include "lang/trace_fixture.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

using test::error_of;
using test::expect_ptx;
using test::vector_arg;

TEST(Debugging, PassesPrintedValuesAsNvccDoes) {
  auto kernel = [](const Tensor& x) {
    Value i = thread_idx().x;
    printf_("thread %d: %f, %5.1f%%\n", i, x(i).load(), 2.5);
    printf_("%c %llx\n", 'c', (i * i).to(u64));
    printf_("done\n");
    printf_("done\n");
  };
  expect_ptx("printf", {90, 'a'}, kernel, vector_arg(f16, 128));
}

TEST(Debugging, AssertsAsNvccDoes) {
  auto kernel = [](const Tensor& x) {
    assert_(block_threads() == 128, "known when traced");
    Value positive = x(thread_idx().x).load() > 0;
    assert_(Arg(positive, SourceLoc{"kernel.cpp", 7}), "x must be positive");
  };
  expect_ptx("assert", {90, 'a'}, kernel, vector_arg(f32, 128));
}

TEST(Debugging, RefusesFormatsThatDoNotFit) {
  auto traced = [](auto body) {
    return error_of([&](const Value& n) { body(n); }, ScalarArg{s32, {}});
  };
  EXPECT_EQ(traced([](const Value& n) { printf_("%d %d\n", n); }),
            "printf_: the format has 2 conversions and the call 1 values; give one value each, at "
            "most 32");
  EXPECT_EQ(traced([](const Value& n) { printf_("%s\n", n); }),
            "printf_: '%s' is no conversion of device values; take %d %i %u %o %x %X %c %e %f %g "
            "%a or %p, and write texts and widths into the format");
  EXPECT_EQ(traced([](const Value& n) { printf_("%*d\n", 3, n); }),
            "printf_: '%*' is no conversion of device values; take %d %i %u %o %x %X %c %e %f %g "
            "%a or %p, and write texts and widths into the format");
  EXPECT_EQ(traced([](const Value&) { printf_("50%"); }),
            "printf_: '%' is no conversion of device values; take %d %i %u %o %x %X %c %e %f %g "
            "%a or %p, and write texts and widths into the format");
  EXPECT_EQ(traced([](const Value& n) { printf_("%d\n", n.to(s64)); }),
            "printf_: %d prints integers of up to 32 bits, the value is s64; take another "
            "conversion, or convert with .to()");
  EXPECT_EQ(traced([](const Value& n) { printf_("%lld\n", n); }),
            "printf_: %lld prints 64-bit integers, the value is s32; take another conversion, or "
            "convert with .to()");
  EXPECT_EQ(traced([](const Value& n) { printf_("%f\n", n); }),
            "printf_: %f prints floating-point types, the value is s32; take another conversion, "
            "or convert with .to()");
  EXPECT_EQ(traced([](const Value& n) { printf_("%x\n", n.bitcast(f16x2)); }),
            "printf_: %x prints integers of up to 32 bits, the value is f16x2; take another "
            "conversion, or convert with .to()");
  EXPECT_EQ(traced([](const Value&) { printf_("%d\n", 2.5); }),
            "printf_ with %d: the literal 2.5 does not fit type s32; write another literal, or "
            "convert the value beside it with .to()");
  EXPECT_EQ(traced([](const Value& n) { assert_(n, "n"); }),
            "assert_: needs pred and got s32; compare with 0");
}

}  // namespace
}  // namespace tilewright
