// SPDX-License-Identifier: Apache-2.0
// Host-side tensor descriptions: strides, extents in memory, and what is refused.
#include "tilewright/view.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <string>
#include <vector>

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

TEST(View, OverlapIsOfElementsNotOfRanges) {
  const Ints pitch{96, 1};
  const View left = make_view(1000, Type::bf16, Ints{4, 64}, pitch);
  struct Row {
    const char* name;
    View other;
    bool overlaps;
  };
  const Row rows[] = {
      {"the other columns of the rows", make_view(1128, Type::bf16, Ints{4, 32}, pitch), false},
      {"one column of them", make_view(1126, Type::bf16, Ints{4, 32}, pitch), true},
      {"other columns, which reach the next row", make_view(1128, Type::bf16, Ints{4, 33}, pitch),
       true},
      {"the other columns, as bytes", make_view(1128, Type::u8, Ints{4, 64}, Ints{192, 1}), false},
      {"one byte more", make_view(1127, Type::u8, Ints{4, 64}, Ints{192, 1}), true},
      {"the other columns of another pitch", make_view(1128, Type::bf16, Ints{2, 32}, Ints{192, 1}),
       false},
      {"a pitch that drifts into the rows", make_view(1128, Type::bf16, Ints{4, 8}, Ints{97, 1}),
       false},
      {"and meets one", make_view(1128, Type::bf16, Ints{4, 31}, Ints{97, 1}), true},
      {"the other columns, backwards",
       make_view(1000 + 3 * 192 + 128, Type::bf16, Ints{4, 32}, Ints{-96, 1}), false},
      {"heads of the same rows", make_view(1128, Type::bf16, Ints{4, 2, 16}, Ints{96, 16, 1}),
       false},
      {"the row between two", make_view(1000 + 128, Type::bf16, Ints{32}, Ints{1}), false},
      {"pairs of four bits", make_view(1128, Type::e2m1, Ints{4, 128}, Ints{384, 1}), false},
      {"pairs of four bits, one too early", make_view(1127, Type::e2m1, Ints{4, 1}, Ints{384, 1}),
       true},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(overlap(left, row.other), row.overlaps) << row.name;
    EXPECT_EQ(overlap(row.other, left), row.overlaps) << row.name;
  }
}

TEST(View, PagesOfKeysAndValuesMayTakeTurns) {
  const Ints shape{64'000, 16, 8, 128}, strides{2 * 16 * 8 * 128, 8 * 128, 128, 1};
  const View keys = make_view(4096, Type::bf16, shape, strides);
  EXPECT_FALSE(overlap(keys, make_view(4096 + 16 * 8 * 128 * 2, Type::bf16, shape, strides)));
  EXPECT_TRUE(overlap(keys, make_view(4096 + 16 * 8 * 128 * 2 - 2, Type::bf16, shape, strides)));
}

/// By listing the bytes.
bool share_bytes(const View& a, const View& b) {
  auto bytes_of = [](const View& view) {
    std::set<std::int64_t> found;
    for (std::int64_t i = 0; i < size(view); ++i) {
      std::int64_t rest = i, offset = 0;
      for (std::size_t mode = 0; mode < static_cast<std::size_t>(view.rank); ++mode) {
        offset += rest % view.shape[mode] * view.stride[mode];
        rest /= view.shape[mode];
      }
      for (int byte = 0; byte < bits(view.type) / 8; ++byte) {
        found.insert(static_cast<std::int64_t>(view.address) + offset * bits(view.type) / 8 + byte);
      }
    }
    return found;
  };
  const std::set<std::int64_t> of_a = bytes_of(a), of_b = bytes_of(b);
  return std::any_of(of_a.begin(), of_a.end(), [&](std::int64_t at) { return of_b.count(at) > 0; });
}

TEST(View, OverlapIsWhatListingTheBytesSays) {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  auto pick = [&](int low, int high) {
    return std::int64_t{low} +
           static_cast<std::int64_t>(random() % static_cast<unsigned>(high - low + 1));
  };
  auto view = [&] {
    Ints shape, stride;
    for (std::int64_t i = pick(1, 3); i > 0; --i) {
      shape.push_back(pick(1, 4));
      stride.push_back(pick(-9, 24));
    }
    const Type types[] = {Type::u8, Type::bf16, Type::f32};
    return make_view(static_cast<std::uint64_t>(pick(1000, 1040)), types[pick(0, 2)], shape,
                     stride);
  };
  int shared = 0, apart = 0;
  for (int i = 0; i < 4000; ++i) {
    const View a = view(), b = view();
    (share_bytes(a, b) ? shared : apart) += 1;
    EXPECT_EQ(overlap(a, b), share_bytes(a, b))
        << "seed " << kSeed << ": " << to_string(a) << " at " << a.address << ", " << to_string(b)
        << " at " << b.address;
  }
  EXPECT_GT(std::min(shared, apart), 500);  // both happen
}

TEST(View, SaysWhereItsOwnElementsOverlap) {
  struct Row {
    const char* name;
    Ints shape, stride;
    bool overlaps;
  };
  const Row rows[] = {
      {"contiguous", {4, 64}, {64, 1}, false},
      {"rows apart", {4, 64}, {96, 1}, false},
      {"a row too near", {4, 64}, {63, 1}, true},
      {"one row", {1, 64}, {3, 1}, false},
      {"a broadcast", {4, 64}, {0, 1}, true},
      {"no elements", {0, 64}, {0, 1}, false},
      {"transposed", {64, 4}, {1, 64}, false},
      {"backwards", {4, 64}, {-64, 1}, false},
      {"backwards and too near", {4, 64}, {-63, 1}, true},
      {"modes that meet late", {3, 4}, {4, 3}, false},
      {"modes that meet", {4, 5}, {4, 3}, true},
  };
  for (const Row& row : rows)
    EXPECT_EQ(overlaps_itself(make_view(4096, Type::f16, row.shape, row.stride)), row.overlaps)
        << row.name;
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
