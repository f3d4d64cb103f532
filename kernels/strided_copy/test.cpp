// SPDX-License-Identifier: Apache-2.0
// strided_copy against the host, bit for bit: strides of both sides, widths, casts, refusals.
#include "kernels/strided_copy/strided_copy.h"
#include "operator_fixture.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

namespace tilewright {
namespace {

using test::OperatorTest;
using test::Placement;

using Numbers = std::vector<std::int64_t>;

/// One side of a copy: strides, and elements before the first one.
struct Side {
  Numbers stride;
  std::int64_t offset = 0;
};

constexpr std::byte kUntouched{0xa5};

/// Row-major strides of the modes in that order, each row `padding` longer.
Numbers strides_in(const Numbers& shape, const Numbers& order, std::int64_t padding = 0) {
  Numbers stride(shape.size());
  std::int64_t step = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    const auto mode = static_cast<std::size_t>(order[i]);
    stride[mode] = step;
    step = step * shape[mode] + padding;
  }
  return stride;
}

/// Elements of memory up to the last one of the side.
std::int64_t reach_of(const Side& side, const Numbers& shape) {
  std::int64_t reach = side.offset + 1;
  for (std::size_t i = 0; i < shape.size(); ++i)
    reach += std::max<std::int64_t>(0, shape[i] - 1) * side.stride[i];
  return reach;
}

/// place(row-major number of an element, its place in the side's memory) for all elements.
template <class Place>
void for_each_place(const Side& side, const Numbers& shape, Place&& place) {
  const std::int64_t count = element_count(shape);
  for (std::int64_t number = 0; number < count; ++number) {
    std::int64_t rest = number, at = side.offset;
    for (std::size_t i = shape.size(); i-- > 0; rest /= shape[i])
      at += rest % shape[i] * side.stride[i];
    place(number, at);
  }
}

class StridedCopy : public OperatorTest {
 protected:
  const Operator& op = strided_copy_operator();

  static View view_of(const Buffer& memory, Type type, const Numbers& shape, const Side& side) {
    const auto offset = static_cast<std::uint64_t>(side.offset * bytes(type));
    return make_view(memory.address() + offset, type, shape, side.stride);
  }

  /// Copies random elements between the sides, and compares all of dst's memory.
  void copy(const Numbers& shape, const Side& from, const Side& to, Type type = f16,
            std::optional<Type> cast = std::nullopt,
            std::optional<StridedCopyConfig> config = std::nullopt) {
    const Array memory = random("src", type, {reach_of(from, shape)});
    Buffer src(device, static_cast<std::int64_t>(memory.bytes.size()));
    src.upload(memory.bytes);
    const Type out = cast.value_or(type);
    Buffer dst(device, reach_of(to, shape) * bytes(out) + 16);
    dst.fill(kUntouched);
    const View source = view_of(src, type, shape, from);
    const View target = view_of(dst, out, shape, to);
    if (config) {
      prepare_strided_copy(device, plan_strided_copy(device.properties(), source, target, *config))
          .launch(stream);
    } else {
      strided_copy(stream, source, target);
    }
    stream.synchronize();
    EXPECT_EQ(download<std::byte>(dst), expected(memory, shape, from, to, out, dst.size_bytes()))
        << to_string(source) << " to " << to_string(target);
  }

 private:
  static std::vector<std::byte> expected(const Array& memory, const Numbers& shape,
                                         const Side& from, const Side& to, Type type,
                                         std::int64_t size_bytes) {
    Array elements = memory;
    if (type != memory.type) elements = make_array("dst", type, memory.shape, to_doubles(memory));
    const auto width = static_cast<std::size_t>(bytes(type));
    std::vector<std::byte> out(static_cast<std::size_t>(size_bytes), kUntouched);
    std::vector<std::size_t> places(static_cast<std::size_t>(element_count(shape)));
    for_each_place(from, shape, [&](std::int64_t number, std::int64_t at) {
      places[static_cast<std::size_t>(number)] = static_cast<std::size_t>(at);
    });
    for_each_place(to, shape, [&](std::int64_t number, std::int64_t at) {
      const std::size_t source = places[static_cast<std::size_t>(number)];
      std::memcpy(out.data() + static_cast<std::size_t>(at) * width,
                  elements.bytes.data() + source * width, width);
    });
    return out;
  }
};

TEST_F(StridedCopy, CopiesEveryElementSizeAndShape) {
  for (Type type : {u8, bf16, f32, f64, e4m3, s64}) {
    run(op, {random("src", type, {37})});
    run(op, {random("src", type, {3, 5, 7, 2, 9})});
  }
  for (std::int64_t rows : {1, 2, 7, 33}) {
    for (std::int64_t columns : {1, 3, 8, 129, 1000})
      run(op, {random("src", f16, {rows, columns})}, {}, Placement{.row_padding = 3});
  }
}

TEST_F(StridedCopy, TakesModesInAnyOrderOnBothSides) {
  const Numbers shape{3, 4, 5, 2, 6};
  Numbers order{0, 1, 2, 3, 4};
  int number = 0;
  do {
    const Numbers other{order[2], order[0], order[4], order[1], order[3]};
    const Type type = number % 3 == 0 ? u8 : number % 3 == 1 ? f16 : f64;
    const std::int64_t padding = number++ % 2;
    copy(shape, {strides_in(shape, order)}, {strides_in(shape, other, padding)}, type);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(StridedCopy, RepeatsElementsOfSrc) {
  const Numbers shape{3, 4, 5, 16};
  for (unsigned repeated = 1; repeated < 16; ++repeated) {
    Side from{strides_in(shape, {0, 1, 2, 3})};
    for (std::size_t i = 0; i < 4; ++i)
      if ((repeated >> i & 1) != 0) from.stride[i] = 0;
    copy(shape, from, {strides_in(shape, {0, 1, 2, 3})});
    copy(shape, from, {strides_in(shape, {3, 1, 0, 2})}, u8);
    copy(shape, from, {strides_in(shape, {0, 1, 2, 3}, 1)}, bf16, f32);
  }
}

TEST_F(StridedCopy, TakesWindowsOfSrcThatOverlap) {
  copy({20, 8}, {{1, 1}}, {{8, 1}});
  copy({20, 8}, {{3, 2}}, {{8, 1}}, u8);
}

TEST_F(StridedCopy, TakesStepsAlongEveryMode) {
  for (std::int64_t step : {1, 2, 3, 8}) {
    for (std::int64_t other : {1, 2, 5}) {
      copy({33}, {{step}}, {{other}});
      copy({3, 17}, {{17 * step + 1, step}}, {{other, 3 * other}}, u8);
      copy({3, 32}, {{32 * step, step}}, {{32 * other, other}}, f32, bf16);
    }
  }
}

TEST_F(StridedCopy, TakesTheAlignmentThatEachSideHas) {
  for (Type type : {u8, f16, f32}) {
    for (std::int64_t offset : {0, 1, 2, 3, 8}) {
      for (std::int64_t other : {0, 1, 4}) {
        copy({5, 40}, {{48, 1}, offset}, {{64, 1}, other}, type);
        copy({5, 37}, {{48, 1}, offset}, {{37, 1}, other}, type);
      }
    }
  }
}

TEST_F(StridedCopy, TakesRowsOfEveryLength) {
  for (std::int64_t n = 1; n <= 40; ++n) {
    copy({3, n}, {{64, 1}}, {{48, 1}}, u8);
    copy({3, n}, {{64, 1}}, {{48, 1}}, f32, f16);
    copy({n}, {{1}}, {{1}}, f16);
  }
}

TEST_F(StridedCopy, MergesModesThatContinueEachOtherOnBothSides) {
  const auto rank_of = [&](const Numbers& shape, const Numbers& from, const Numbers& to) {
    const std::uint64_t src = 1 << 20, dst = 1 << 24;
    return plan_strided_copy(device.properties(), make_view(src, f16, shape, from),
                             make_view(dst, f16, shape, to))
        .dst.rank;
  };
  const Numbers rows{60, 20, 5, 1};
  EXPECT_EQ(rank_of({2, 3, 4, 5}, rows, rows), 1);
  EXPECT_EQ(rank_of({2, 3, 4, 5}, {100, 32, 8, 1}, rows), 3);
  EXPECT_EQ(rank_of({2, 3, 4, 5}, rows, {96, 32, 8, 1}), 2);
  EXPECT_EQ(rank_of({2, 3, 4, 5}, {0, 0, 5, 1}, rows), 2);
  EXPECT_EQ(rank_of({2, 3, 4, 5}, {0, 0, 0, 0}, rows), 1);
  EXPECT_EQ(rank_of({2, 3, 4, 5}, {1, 2, 6, 24}, {1, 2, 6, 24}), 1);
  EXPECT_EQ(rank_of({2, 3, 4, 5}, {1, 2, 6, 24}, rows), 4);
  EXPECT_EQ(rank_of({1, 7, 1, 1, 9}, {5, 9, 3, -1, 1}, {1, 9, 8, 64, 1}), 1);
  EXPECT_EQ(rank_of({1, 1}, {5, 9}, {0, 0}), 1);
}

TEST_F(StridedCopy, MakesItemsOfTheWidestAccessThatASideAllows) {
  struct Row {
    const char* what;
    Type from, to;
    Numbers shape, src, dst;
    std::uint64_t src_offset, dst_offset;
    int elems;
  };
  const Row rows[] = {
      {"16 bytes", f16, f16, {4, 24}, {24, 1}, {24, 1}, 0, 0, 8},
      {"16 bytes of dst in a cast", f32, bf16, {4, 24}, {24, 1}, {24, 1}, 0, 0, 8},
      {"16 bytes of a wider dst", e4m3, f32, {4, 24}, {24, 1}, {24, 1}, 0, 0, 4},
      {"dst where src has steps", f16, f16, {4, 24}, {48, 2}, {24, 1}, 0, 0, 8},
      {"src where dst has steps", f16, f16, {4, 24}, {24, 1}, {48, 2}, 0, 0, 8},
      {"steps on both sides", f16, f16, {4, 24}, {48, 2}, {72, 3}, 0, 0, 1},
      {"the wider side", f16, f16, {4, 24}, {26, 1}, {28, 1}, 0, 0, 4},
      {"strides of both sides", f16, f16, {4, 24}, {26, 1}, {26, 1}, 0, 0, 2},
      {"addresses of both sides", u8, u8, {64}, {1}, {1}, 4, 2, 4},
      {"short rows", u8, u8, {4, 3}, {16, 1}, {16, 1}, 0, 0, 2},
      {"a repeated element", f64, f64, {4, 8}, {1, 0}, {8, 1}, 0, 0, 2},
  };
  for (const Row& row : rows) {
    const View src = make_view((1 << 20) + row.src_offset, row.from, row.shape, row.src);
    const View dst = make_view((1 << 24) + row.dst_offset, row.to, row.shape, row.dst);
    EXPECT_EQ(plan_strided_copy(device.properties(), src, dst).config.elems, row.elems) << row.what;
  }
}

TEST_F(StridedCopy, LeavesModesOfOneElementOut) {
  copy({1, 7, 1, 1, 9}, {{5, 9, 0, 77, 1}}, {{0, 16, 1, 3, 1}});
  copy({1, 1, 1}, {{5, 3, 1}, 2}, {{0, 0, 0}, 1});
}

TEST_F(StridedCopy, CountsItemsIn64Bits) {
  const Numbers shape{3, 4, 5, 2, 6};
  const Side from{strides_in(shape, {4, 2, 0, 3, 1})}, to{strides_in(shape, {1, 0, 3, 2, 4}, 1)};
  for (int elems : {1, 2, 4}) {
    const StridedCopyConfig config{.elems = elems, .items = 2, .threads = 64, .wide = true};
    copy(shape, from, to, f16, std::nullopt, config);
    copy(shape, from, to, bf16, f32, config);
    copy({100}, {{1}}, {{1}}, u8, std::nullopt, config);
  }
}

TEST_F(StridedCopy, CountsItemsIn64BitsWhereThereAreMany) {
  const auto is_wide = [&](std::int64_t n) {
    const Numbers shape{n, 2}, from{2, 1}, to{1, n};
    return plan_strided_copy(device.properties(), make_view(1 << 20, u8, shape, from),
                             make_view(std::uint64_t{1} << 40, u8, shape, to))
        .config.wide;
  };
  EXPECT_FALSE(is_wide(std::int64_t{1} << 30));
  EXPECT_TRUE(is_wide(std::int64_t{1} << 34));
}

TEST_F(StridedCopy, IsRightInEveryConfiguration) {
  run_candidates(op, {random("src", f16, {37, 104})});
  run_candidates(op, {random("src", u8, {9, 30})}, {}, Placement{.row_padding = 2});
  run_candidates(op, {random("src", f32, {9, 30})}, {{"out_type", "bf16"}},
                 Placement{.row_padding = 2});
}

/// Every code of the types of 16 and 8 bits: NaN, infinities, subnormal numbers, ties.
TEST_F(StridedCopy, CastsEveryCode) {
  for (Type type : {bf16, f16, e4m3, e5m2}) {
    const std::int64_t count = std::int64_t{1} << bits(type);
    Array codes = make_array("src", type, {count});
    for (std::int64_t code = 0; code < count; ++code) {
      std::memcpy(codes.bytes.data() + code * bytes(type), &code,
                  static_cast<std::size_t>(bytes(type)));
    }
    for (const char* out : {"bf16", "f16", "f32"})
      run(op, {codes}, {{"out_type", out}});
  }
}

TEST_F(StridedCopy, CastsF32WithOneRounding) {
  std::vector<float> numbers{0.0f,       INFINITY,    NAN,         3.4028235e38f, 65504.0f,
                             65519.996f, 65520.0f,    65536.0f,    0x1p-149f,     0x1p-126f,
                             0x1p-134f,  0x1.8p-134f, 0x1p-133f,   0x1p-25f,      0x1.000002p-25f,
                             0x1.8p-24f, 0x1p-24f,    0x1.ffcp-15f};
  for (int exponent : {-130, -20, 0, 15, 127}) {
    for (std::uint32_t above = 0; above < 4; ++above) {  // around and on ties of both types
      for (std::uint32_t half : {0x1000U, 0x8000U}) {
        const std::uint32_t one = std::bit_cast<std::uint32_t>(std::ldexp(1.0f, exponent));
        for (std::uint32_t off : {~0U, 0U, 1U})
          numbers.push_back(std::bit_cast<float>(one + above * 2 * half + half + off));
      }
    }
  }
  std::vector<double> values;
  for (float number : numbers) {
    values.push_back(double{number});
    values.push_back(-double{number});
  }
  const auto count = static_cast<std::int64_t>(values.size());
  for (const char* out : {"bf16", "f16", "f32"})
    run(op, {make_array("src", f32, {count}, values)}, {{"out_type", out}});
}

TEST_F(StridedCopy, CastsWhatIsTooLargeToInfinity) {
  const std::vector<double> values{1e30, -1e30, 3.4028234663852886e38, -65520, 65519};
  const Array src = make_array("src", f32, {5}, values);
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(to_doubles(run(op, {src}, {{"out_type", "f16"}}).front()),
            (std::vector<double>{inf, -inf, inf, -inf, 65504}));
  EXPECT_EQ(to_doubles(run(op, {src}, {{"out_type", "bf16"}}).front())[2], inf);
}

TEST_F(StridedCopy, KeepsTheBitsOfNanWithoutACast) {
  Array src = make_array("src", f16, {64});
  for (std::size_t i = 0; i < src.bytes.size(); i += 2) {
    src.bytes[i] = static_cast<std::byte>(i / 2 + 1);
    src.bytes[i + 1] = std::byte{0x7c};
  }
  EXPECT_EQ(run(op, {src}).front().bytes, src.bytes);
}

TEST_F(StridedCopy, LaunchesNothingForNoElements) {
  run(op, {random("src", f16, {0})});
  run(op, {random("src", f16, {0, 5})});
  run(op, {random("src", f32, {3, 0, 5})}, {{"out_type", "bf16"}});
}

TEST_F(StridedCopy, ReachesBeyondTwoToThe31Elements) {
  if (!emulated()) GTEST_SKIP() << "takes 8 GiB: the emulator's memory is sparse";
  constexpr std::int64_t kFar = (std::int64_t{1} << 31) + 8;
  const Numbers shape{2, 3, 8};
  const Side far{{kFar, 8, 1}}, near{{24, 1, 3}};
  const std::vector<std::uint8_t> row{1, 2, 3, 4, 5, 6, 7, 8};
  Buffer memory(device, kFar * 2 + 64);
  Buffer copied(device, 64), back(device, kFar * 2 + 64);
  for (std::int64_t place : {0, 8, 16}) {
    memory.upload(std::as_bytes(std::span(row)), place);
    memory.upload(std::as_bytes(std::span(row)), kFar + place);
  }
  strided_copy(stream, view_of(memory, u8, shape, far), view_of(copied, u8, shape, near));
  strided_copy(stream, view_of(copied, u8, shape, near), view_of(back, u8, shape, far));
  stream.synchronize();
  std::vector<std::uint8_t> got(48);
  copied.download(std::as_writable_bytes(std::span(got)));
  for_each_place(near, shape, [&](std::int64_t number, std::int64_t at) {
    EXPECT_EQ(got[static_cast<std::size_t>(at)], number % 8 + 1) << number;
  });
  for (std::int64_t place : {std::int64_t{16}, kFar, kFar + 16}) {
    std::vector<std::uint8_t> end(8);
    back.download(std::as_writable_bytes(std::span(end)), place);
    EXPECT_EQ(end, row) << place;
  }
}

class StridedCopyRefusal : public StridedCopy {
 protected:
  Buffer memory{device, 8192};

  View at(std::uint64_t offset, Type type, const Numbers& shape, const Numbers& stride) const {
    return make_view(memory.address() + offset, type, shape, stride);
  }
  std::string text(const View& src, const View& dst) const {
    try {
      strided_copy(stream, src, dst);
    } catch (const Error& error) {
      return error.message();
    }
    return "accepted";
  }
};

TEST_F(StridedCopyRefusal, NamesTypes) {
  const View src = at(0, f16, {4, 8}, {8, 1});
  EXPECT_EQ(text(src, at(4096, s16, {4, 8}, {8, 1})),
            "strided_copy: src has type f16 and dst s16; a cast goes from bf16, f16, f32, e4m3 or "
            "e5m2 to bf16, f16 or f32");
  EXPECT_EQ(text(src, at(4096, e4m3, {4, 8}, {8, 1})),
            "strided_copy: src has type f16 and dst e4m3; a cast goes from bf16, f16, f32, e4m3 or "
            "e5m2 to bf16, f16 or f32");
  EXPECT_EQ(text(at(0, e2m1, {4, 8}, {8, 1}), at(4096, e2m1, {4, 8}, {8, 1})),
            "strided_copy: elements of type e2m1 have 4 bits; it takes 8, 16, 32 or 64");
  EXPECT_EQ(refusal(op, {random("src", s32, {4})}, {{"out_type", "f32"}}),
            "strided_copy: src has type s32 and dst f32; a cast goes from bf16, f16, f32, e4m3 or "
            "e5m2 to bf16, f16 or f32");
  Arguments arguments(op.schema);
  arguments.set("src", src);
  arguments.set("dst", at(4096, f32, {4, 8}, {8, 1}));
  try {
    op.launch(device, stream, arguments);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "strided_copy: dst has type f32; out_type=as_src asks for f16");
  }
}

TEST_F(StridedCopyRefusal, NamesRanksAndShapes) {
  EXPECT_EQ(refusal(op, {random("src", f16, {1, 2, 1, 2, 1, 2})}),
            "strided_copy: src is f16[1,2,1,2,1,2]; it must have rank 1 to 5");
  EXPECT_EQ(text(at(0, f16, {}, {}), at(4096, f16, {}, {})),
            "strided_copy: src is f16[]; it must have rank 1 to 5");
  const View src = at(0, f16, {4, 8}, {8, 1});
  EXPECT_EQ(text(src, at(4096, f16, {8, 4}, {4, 1})),
            "strided_copy: src is f16[4,8] and dst f16[8,4]; the shapes must be equal");
  EXPECT_EQ(text(src, at(4096, f16, {32}, {1})),
            "strided_copy: src is f16[4,8] and dst f16[32]; the shapes must be equal");
}

TEST_F(StridedCopyRefusal, NamesStridesAndAddresses) {
  const View src = at(0, f16, {4, 8}, {8, 1});
  EXPECT_EQ(text(at(64, f16, {4, 8}, {8, -1}), src),
            "strided_copy: src f16[4,8]:[8,-1] has a stride of -1; it must be at least 0");
  EXPECT_EQ(text(src, at(4096, f16, {4, 8}, {-8, 1})),
            "strided_copy: dst f16[4,8]:[-8,1] has a stride of -8; it must be at least 0");
  EXPECT_EQ(text(src, at(4096, f16, {4, 8}, {0, 1})),
            "strided_copy: dst is f16[4,8]:[0,1], whose elements overlap; they must be apart");
  EXPECT_EQ(text(src, at(4096, f16, {4, 8}, {7, 1})),
            "strided_copy: dst is f16[4,8]:[7,1], whose elements overlap; they must be apart");
  EXPECT_EQ(text(src, at(4096, f16, {4, 8}, {2, 4})),
            "strided_copy: dst is f16[4,8]:[2,4], whose elements overlap; they must be apart");
  EXPECT_EQ(text(src, at(4097, f16, {4, 8}, {8, 1})),
            "strided_copy: the address of dst is not a multiple of 2, the bytes of its elements");
}

TEST_F(StridedCopyRefusal, NamesSidesThatOverlap) {
  const View src = at(0, f16, {4, 8}, {8, 1});
  EXPECT_EQ(text(src, src), "strided_copy: src and dst overlap; they must be apart");
  EXPECT_EQ(text(src, at(32, f16, {4, 8}, {1, 4})),
            "strided_copy: src and dst overlap; they must be apart");
  memory.fill(std::byte{0});
  EXPECT_EQ(text(at(0, f16, {4, 8}, {16, 1}), at(16, f16, {4, 8}, {16, 1})), "accepted");
}

}  // namespace
}  // namespace tilewright
