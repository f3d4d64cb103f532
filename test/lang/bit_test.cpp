// SPDX-License-Identifier: Apache-2.0
// Bit functions as PTX, and what is refused.
#include "tilewright/bit.h"

#include "lang/trace_fixture.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

using test::error_of;
using test::expect_ptx;
using test::vector_arg;

TEST(Bit, SpellsEachFunction) {
  auto kernel = [](const Tensor& x, const Tensor& y) {
    Value a = x(0).load();
    Value b = x(1).load();
    Value wide = y(0).load();
    x(2) = popc(a) + clz(wide);
    x(3) = brev(a) ^ bfe(b, 4, 8);
    x(4) = bfi(a, b, 8, 16) ^ prmt(a, b, 0x3210);
    x(5) = shf_left(a, b, 7) ^ shf_right(a, b, 9);
    x(6) = dp4a(a, b, 1) + dp4a(a.to(s32), b, 1).to(u32);
    y(1) = brev(wide) ^ bfe(wide, a.to(s32), 5);
  };
  expect_ptx("bit", {70, '\0'}, kernel, vector_arg(u32, 8), vector_arg(s64, 2));
}

TEST(Bit, SharesEqualCalls) {
  auto kernel = [](const Tensor& x) {
    Value a = x(0).load();
    x(1) = popc(a) + popc(a);
  };
  Traced traced = trace(TraceOptions{.name = "shared"}, kernel, vector_arg(u32, 2));
  std::string text = ptx::print(traced.module());
  std::size_t first = text.find("popc");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(text.find("popc", first + 1), std::string::npos);
}

TEST(Bit, RefusesOtherTypes) {
  EXPECT_EQ(error_of([](const Tensor& x) { popc(x(0)); }, vector_arg(f32, 1)),
            "popc: not defined for f32; it takes integers of 32 or 64 bits");
  EXPECT_EQ(error_of([](const Tensor& x) { prmt(x(0), x(0), 0); }, vector_arg(u64, 1)),
            "prmt: not defined for u64; it takes s32 and u32");
}

}  // namespace
}  // namespace tilewright
