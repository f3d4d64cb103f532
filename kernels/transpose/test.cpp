// SPDX-License-Identifier: Apache-2.0
// transpose against the host, bit for bit: shapes, element sizes, batches, strides.
#include "kernels/transpose/transpose.h"
#include "operator_fixture.h"

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Placement;

class Transpose : public OperatorTest {
 protected:
  const Operator& op = transpose_operator();
};

TEST_F(Transpose, SwapsModesOfAnyShape) {
  for (std::int64_t m : {1, 7, 64, 65, 130}) {
    for (std::int64_t n : {1, 3, 63, 64, 200})
      run(op, {random("src", f16, {m, n})});
  }
}

TEST_F(Transpose, TakesElementsOfEverySize) {
  for (Type type : {u8, bf16, f32, f64, e4m3, s64})
    run(op, {random("src", type, {70, 90})});
}

TEST_F(Transpose, IsRightInEveryConfiguration) {
  run_candidates(op, {random("src", bf16, {2, 200, 72})});
  run_candidates(op, {random("src", u8, {48, 80})});
  run_candidates(op, {random("src", f16, {71, 67})});
  run_candidates(op, {random("src", f32, {68, 36})});
  run_candidates(op, {random("src", f64, {34, 38})});
}

TEST_F(Transpose, TakesBatches) { run(op, {random("src", f32, {3, 65, 33})}); }

TEST_F(Transpose, TakesStridesAndAlignments) {
  for (std::int64_t padding : {1, 8}) {
    for (std::int64_t offset : {0, 1})
      run(op, {random("src", bf16, {66, 34})}, {},
          Placement{.row_padding = padding, .offset_elems = offset});
  }
}

/// Rows begin at every element of a word of src and of a sector of dst, whose ends lie apart too.
TEST_F(Transpose, TakesRowsThatBeginAnywhere) {
  constexpr std::int64_t kMost = 70;
  for (Type type : {u8, f16, f32, f64}) {
    for (std::int64_t m = 1; m <= kMost; ++m) {
      const std::int64_t n = 1 + m * 29 % kMost;
      const Placement placement{.row_padding = m * 5 % 11, .offset_elems = m % 8};
      SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n) + " at " +
                   std::to_string(placement.offset_elems));
      run(op, {random("src", type, {m, n})}, {}, placement);
    }
  }
}

TEST_F(Transpose, TakesEdgesOfManyTiles) {
  for (Type type : {u8, f16, f32, f64}) {
    run(op, {random("src", type, {2, 255, 131})}, {}, Placement{.row_padding = 3});
    run(op, {random("src", type, {513, 66})}, {}, Placement{.row_padding = 1});
  }
}

TEST_F(Transpose, LaunchesNothingForNoElements) {
  run(op, {random("src", f16, {0, 5})});
  run(op, {random("src", f16, {5, 0})});
}

TEST_F(Transpose, RefusesWhatItCannotTranspose) {
  EXPECT_EQ(refusal(op, {random("src", f16, {5})}),
            "transpose: src is f16[5]; it must have rank 2 or 3");
  Buffer memory(device, 4096);
  std::int64_t tall[] = {8, 4};
  std::int64_t wide[] = {4, 8};
  View src = make_view(memory.address(), f16, tall);
  std::uint64_t apart = memory.address() + 1024;
  auto text = [&](const View& from, const View& to) {
    try {
      transpose(stream, from, to);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(text(src, make_view(apart, bf16, wide)),
            "transpose: src has type f16 and dst bf16; a transpose does not convert");
  EXPECT_EQ(text(src, make_view(apart, f16, tall)),
            "transpose: src is f16[8,4] and dst f16[8,4]; the last two extents must change places");
  EXPECT_EQ(text(src, make_view(memory.address(), f16, wide)),
            "transpose: src and dst overlap; they must be apart");
}

}  // namespace
}  // namespace tilewright
