// SPDX-License-Identifier: Apache-2.0
// Host-side tensor descriptions: strides, extents in memory, and what is refused.
#include "tilewright/view.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

using Ints = std::vector<std::int64_t>;

std::string message(const Ints& shape, const Ints& stride) {
  try {
    make_view(0, Type::f32, shape, stride);
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(View, IsRowMajorUnlessStridesAreGiven) {
  const View view = make_view(64, Type::bf16, Ints{2, 3, 4});
  EXPECT_EQ(view.stride[0], 12);
  EXPECT_EQ(view.stride[1], 4);
  EXPECT_EQ(view.stride[2], 1);
  EXPECT_TRUE(is_row_major(view));
  EXPECT_EQ(size_bytes(view), 48);
  EXPECT_EQ(to_string(view), "bf16[2,3,4]");
}

TEST(View, PrintsStridesThatLeaveGaps) {
  const View view = make_view(0, Type::f32, Ints{4, 128}, Ints{256, 1});
  EXPECT_FALSE(is_row_major(view));
  EXPECT_EQ(to_string(view), "f32[4,128]:[256,1]");
}

TEST(View, StridesWithoutElementsDoNotCount) {
  const Ints shape{0, 8, 3};
  EXPECT_EQ(make_view(64, Type::f32, shape, Ints{0, 0, 0}), make_view(64, Type::f32, shape));
}

TEST(View, StridesOfExtentOneAreFree) {
  EXPECT_TRUE(is_row_major(make_view(0, Type::f32, Ints{1, 8}, Ints{77, 1})));
}

TEST(View, CoversTheBytesOfItsElements) {
  const ByteRange strided = byte_range(make_view(1000, Type::f32, Ints{4, 8}, Ints{100, 1}));
  EXPECT_EQ(strided.begin, 1000U);
  EXPECT_EQ(strided.end, 1000U + 4 * (300 + 8));
  const ByteRange backwards = byte_range(make_view(1000, Type::f16, Ints{4}, Ints{-2}));
  EXPECT_EQ(backwards.begin, 1000U - 12);
  EXPECT_EQ(backwards.end, 1002U);
  const ByteRange halves = byte_range(make_view(1000, Type::e2m1, Ints{3}, Ints{1}));
  EXPECT_EQ(halves.end - halves.begin, 2U);
  const ByteRange empty = byte_range(make_view(1000, Type::f32, Ints{0, 8}));
  EXPECT_EQ(empty.begin, empty.end);
}

TEST(View, TouchingRangesDoNotOverlap) {
  const View a = make_view(1000, Type::f32, Ints{8});
  EXPECT_FALSE(overlap(a, make_view(1032, Type::f32, Ints{8})));
  EXPECT_TRUE(overlap(a, make_view(1028, Type::f32, Ints{8})));
  EXPECT_FALSE(overlap(a, make_view(1004, Type::f32, Ints{0})));
}

TEST(View, ABroadcastMayHaveMoreElementsThanMemory) {
  const View view = make_view(0, Type::f32, Ints{std::int64_t{1} << 40, 8}, Ints{0, 1});
  EXPECT_EQ(byte_range(view).end, 32U);
}

TEST(View, RefusesWhatItCannotHold) {
  EXPECT_EQ(message(Ints(9, 1), Ints(9, 1)),
            "view: rank 9 exceeds the largest rank of 8; fold modes");
  EXPECT_EQ(message({-1}, {1}), "view: negative extent in shape [-1]");
  EXPECT_EQ(message({4}, {std::int64_t{1} << 61}),
            "view: shape [4] with strides [2305843009213693952] reaches beyond 63-bit addresses");
  EXPECT_THROW(make_view(0, Type::f32, Ints(9, 2)), Error);
  EXPECT_THROW(make_view(0, Type::f32, Ints(3, std::int64_t{1} << 31)), Error);
}

}  // namespace
}  // namespace tilewright
