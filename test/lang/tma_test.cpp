// SPDX-License-Identifier: Apache-2.0
// Tensor copies as PTX, and what is refused.
#include "tilewright/tma.h"

#include "lang/trace_fixture.h"
#include "tilewright/bulk_copy.h"
#include "tilewright/cache_policy.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

using test::error_of;
using test::expect_ptx;

const TensorMapArg kMatrix{f32, {8, 4}};

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

TEST(Tma, SpellsPoliciesReductionsAndPrefetches) {
  auto kernel = [](const TensorMapParam& x) {
    Tensor tile = shared(u32, Layout(Shape{512}), 128);
    Mbarriers full;
    Value keep = cache_policy(Eviction::last);
    Value row = block_idx().x;
    tensor_prefetch_box(x, {row, 0});
    tensor_load(tile(0), x, {row, 0}, full[0], {.policy = keep});
    tensor_store(x, {row, 0}, tile(0), {.policy = keep});
    tensor_min(x, {row, 0}, tile(0));
    tensor_max(x, {row, 0}, tile(0));
    tensor_and(x, {row, 0}, tile(0));
    tensor_or(x, {row, 0}, tile(0));
    tensor_xor(x, {row, 0}, tile(0));
  };
  expect_ptx("tma_forms", {90, '\0'}, kernel, TensorMapArg{u32, {8, 4}});
}

TEST(Tma, RefusesTypesThatItCannotCombine) {
  auto least = [](const TensorMapParam& x) { tensor_min(x, {0, 0}, box()(0, 0)); };
  EXPECT_EQ(error_of(least, kMatrix),
            "tensor_min: not defined for f32; it takes integers of 32 or 64 bits, f16 and bf16");
  auto policy = [](const TensorMapParam& x) {
    tensor_store(x, {0, 0}, box()(0, 0), {.policy = block_idx().x});
  };
  EXPECT_EQ(error_of(policy, kMatrix),
            "tensor_store: a policy of type s32; it must come from cache_policy()");
}

const TensorMapArg kImages = im2col_arg(f32, 4, {{-1, -1, 0}, {-1, -1, 0}, 4, 16});

TEST(Tma, SpellsCopiesForConvolutions) {
  auto kernel = [](const TensorMapParam& x) {
    EXPECT_EQ(box_bytes(x.arg()), 256);
    tensor_load_im2col(box()(0, 0), x, {0, -1, block_idx().x, 0}, {2, 0}, Mbarriers()[0]);
  };
  expect_ptx("tma_im2col", {90, '\0'}, kernel, kImages);
}

TEST(Tma, RefusesMapsOfTheOtherMode) {
  auto tiled = [](const TensorMapParam& x) {
    tensor_load_im2col(box()(0, 0), x, {0, 0}, {0}, Mbarriers()[0]);
  };
  EXPECT_EQ(error_of(tiled, kMatrix),
            "tensor_load_im2col: the map is tiled; make it with im2col_arg()");
  auto columns = [](const TensorMapParam& x) { tensor_store(x, {0, 0, 0, 0}, box()(0, 0)); };
  EXPECT_EQ(error_of(columns, kImages),
            "tensor_store: the map is in im2col mode; only tensor_load_im2col() takes it");
  auto short_by_one = [](const TensorMapParam& x) {
    tensor_load_im2col(box()(0, 0), x, {0, 0, 0, 0}, {0}, Mbarriers()[0]);
  };
  EXPECT_EQ(error_of(short_by_one, kImages),
            "tensor_load_im2col: 1 offsets for a tensor map of rank 4; give one for each dimension "
            "between channels and batch");
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
        options, [](const TensorMapParam&) {}, TensorMapArg{f32, {4, 1, 1, 1, 257}});
    FAIL() << "a box of 257 was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "trace: tensor map: box 257 of dimension 4; use 1 to 256");
  }
}

View view_of(std::vector<std::int64_t> shape, std::vector<std::int64_t> stride,
             std::uint64_t address = 0x1000, Type type = bf16) {
  return make_view(address, type, shape, stride);
}

TEST(TensorMapArg, DescribesAViewInnermostModeFirst) {
  TensorMapArg arg{bf16, {64, 8, 1}, TensorSwizzle::b128};
  TensorMap map = tensor_map(arg, view_of({1, 100, 96}, {7, 128, 1}));
  TensorMap expected{.type = bf16, .rank = 3, .address = 0x1000};
  expected.extents = {96, 100, 1, 1, 1};
  expected.strides = {256, 16};
  expected.box = {64, 8, 1, 1, 1};
  expected.swizzle = TensorSwizzle::b128;
  EXPECT_EQ(map, expected);
  EXPECT_EQ(box_bytes(arg), 1024);
}

TEST(TensorMapArg, RefusesViewsThatTheEngineCannotTake) {
  TensorMapArg arg{bf16, {64, 8}, TensorSwizzle::b128};
  struct Row {
    View view;
    const char* message;
  };
  const Row rows[] = {
      {view_of({100, 96}, {96, 1}, 0x1000, f16),
       "tensor map of f16[100,96]: the kernel was made for rank 2 and type bf16; make another "
       "specialisation for such arguments"},
      {view_of({100}, {1}),
       "tensor map of bf16[100]: the kernel was made for rank 2 and type bf16; make another "
       "specialisation for such arguments"},
      {view_of({100, 96}, {1, 128}),
       "tensor map of bf16[100,96]:[1,128]: the last mode must be contiguous; order the modes so"},
      {view_of({100, 96}, {-128, 1}),
       "tensor map of bf16[100,96]:[-128,1]: stride 0 is negative; the copy engine goes forwards"},
      {view_of({100, 90}, {90, 1}),
       "tensor map of bf16[100,90]: stride of 180 bytes of dimension 1; use a multiple of 16 below "
       "2^40"},
      {view_of({100, 96}, {96, 1}, 0x1008),
       "tensor map of bf16[100,96]: the address is no multiple of 16"},
      {view_of({0, 96}, {96, 1}),
       "tensor map of bf16[0,96]: extent 0 of dimension 1; use 1 to 2^32"},
  };
  for (const Row& row : rows) {
    try {
      tensor_map(arg, row.view);
      ADD_FAILURE() << row.message;
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), row.message);
    }
  }
}

}  // namespace
}  // namespace tilewright
