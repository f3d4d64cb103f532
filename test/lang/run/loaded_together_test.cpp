// SPDX-License-Identifier: Apache-2.0
// Loads that are issued together: all values stay. What the assembler makes of operators that use
// it: test/kernels/early_loads_test.cpp.
#include "tilewright/loaded_together.h"

#include "run_fixture.h"

namespace tilewright::test {
namespace {

class LoadedTogether : public RunTest {};

TEST_F(LoadedTogether, ChangesNoValue) {
  for (const Type first_type : {u8, bf16, f32, u64}) {
    for (const Type other_type : {u8, bf16, f32, u64}) {
      for (const int count : {1, 3, 8}) {
        Data first(first_type, {8}), other(other_type, {8}), first_out = first, other_out = other;
        for (std::size_t i = 0; i < 8; ++i) {
          first.bits[i] = 0x81 + i;
          other.bits[i] = 0xff - i;
        }
        run(
            {.threads = 1},
            [&](const Tensor& x, const Tensor& w, const Tensor& y, const Tensor& z) {
              const Fragment xs[] = {load(x(0), count)}, ws[] = {load(w(0), count)};
              loaded_together(xs, ws);
              store(y(0), xs[0]);
              store(z(0), ws[0]);
            },
            first, other, first_out, other_out);
        for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
          EXPECT_EQ(first_out.bits[i], first.bits[i]) << name(first_type) << " " << count;
          EXPECT_EQ(other_out.bits[i], other.bits[i]) << name(other_type) << " " << count;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::test
