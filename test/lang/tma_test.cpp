// SPDX-License-Identifier: Apache-2.0
// Tensor copies as PTX, and what is refused.
#include "tilewright/tma.h"

#include "lang/trace_fixture.h"
#include "tilewright/bulk_copy.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

using test::error_of;
using test::expect_ptx;

const TensorMapArg kMatrix{f32, 2};

Tensor box(int alignment = 128) { return shared(f32, Layout(Shape{Int(32), Int(16)}), alignment); }

TEST(Tma, SpellsEachCopy) {
  auto kernel = [](const TensorMapParam& x, const TensorMapParam& y) {
    Tensor tile = box();
    Mbarriers full;
    Value column = block_idx().x * 32;
    tensor_prefetch(x);
    tensor_load(tile(0, 0), x, {column, 16}, full[0]);
    tensor_load_multicast(tile(0, 0), x, {column, 0}, full[0], 0b11);
    tensor_store(y, {0, column}, tile(0, 0));
    tensor_add(y, {0, -4}, tile(0, 0));
    bulk_commit();
    bulk_wait_read();
  };
  expect_ptx("tma", {90, '\0'}, kernel, kMatrix, kMatrix);
}

TEST(Tma, RefusesCoordinatesOfAnotherRank) {
  auto kernel = [](const TensorMapParam& x) { tensor_store(x, {0}, box()(0, 0)); };
  EXPECT_EQ(error_of(kernel, kMatrix),
            "tensor_store: 1 coordinates for a tensor map of rank 2; give one a dimension, the "
            "innermost first");
  auto real = [](const TensorMapParam& x) { tensor_store(x, {0, 1.0f}, box()(0, 0)); };
  EXPECT_EQ(error_of(real, kMatrix),
            "tensor_store: a coordinate has type f32; it must be s32 or u32");
}

TEST(Tma, RefusesBoxesThatDoNotFit) {
  auto unaligned = [](const TensorMapParam& x) {
    tensor_load(box(16)(0, 0), x, {0, 0}, Mbarriers()[0]);
  };
  EXPECT_EQ(error_of(unaligned, kMatrix),
            "tensor_load: the box is known to be aligned to 16 bytes; it must be to 128: "
            "shared(type, layout, 128)");
  auto other = [](const TensorMapParam& x) {
    tensor_load(shared(f16, Layout(Shape{Int(32)}), 128)(0), x, {0, 0}, Mbarriers()[0]);
  };
  EXPECT_EQ(error_of(other, kMatrix),
            "tensor_load: a box of f16 in shared memory for a map of f32; it must be of that type "
            "in shared memory");
}

TEST(Tma, RefusesMapsThatCannotBe) {
  TraceOptions options{.name = "mistake", .target = {90, 'a'}, .block = {128, 1, 1}};
  try {
    trace(
        options, [](const TensorMapParam&) {}, TensorMapArg{f32, 6});
    FAIL() << "a map of rank 6 was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "trace: a tensor map of rank 6 and type f32; the rank must be 1 to 5, the elements "
              "of 8 bits or more");
  }
}

}  // namespace
}  // namespace tilewright
