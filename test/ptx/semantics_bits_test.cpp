// SPDX-License-Identifier: Apache-2.0
// Bit fields, permutation, comparison, carry chains and packing against the manual's loops.
#include "ptx/semantics_lanes.h"

#include <bit>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <string>

namespace tilewright::ptx::semantics {
namespace {

using Lane = std::array<std::uint64_t, 4>;
using Expected = std::function<std::uint64_t(const Lane&)>;

/// Field positions and lengths reach past the register; other values are any.
Lane random_lane(std::mt19937_64& random) {
  Lane lane;
  for (std::uint64_t& value : lane)
    value = random() % 2 == 0 ? random() : random() % 80;
  return lane;
}

void compare(const std::string& opcode, const Expected& expected) {
  for (const Isa isa : available_isas()) {
    Execution run(opcode, isa);
    ASSERT_TRUE(run.meaning) << opcode;
    std::mt19937_64 random(42);
    for (int round = 0; round < 200; ++round) {
      std::array<Lane, 32> lanes;
      for (int lane = 0; lane < 32; ++lane) {
        lanes[static_cast<std::size_t>(lane)] = random_lane(random);
        for (std::size_t i = 0; i < 4; ++i)
          run.set(i, lane, lanes[static_cast<std::size_t>(lane)][i]);
      }
      run.execute(0xffffffffu);
      for (int lane = 0; lane < 32; ++lane) {
        const Lane& in = lanes[static_cast<std::size_t>(lane)];
        ASSERT_EQ(run.result(lane), expected(in))
            << opcode << std::hex << " of 0x" << in[0] << ", 0x" << in[1] << ", 0x" << in[2]
            << ", 0x" << in[3] << " level " << static_cast<int>(isa);
      }
    }
  }
}

std::uint64_t extracted(std::uint64_t a, std::uint64_t b, std::uint64_t c, int width,
                        bool is_signed) {
  const int msb = width - 1;
  const int pos = static_cast<int>(b & 0xff);
  const int length = static_cast<int>(c & 0xff);
  const bool sign = is_signed && length != 0 && (a >> std::min(pos + length - 1, msb) & 1) != 0;
  std::uint64_t result = 0;
  for (int i = 0; i <= msb; ++i) {
    const bool bit = i < length && pos + i <= msb ? (a >> (pos + i) & 1) != 0 : sign;
    result |= static_cast<std::uint64_t>(bit) << i;
  }
  return result;
}
std::uint64_t inserted(const Lane& in, int width) {
  const int pos = static_cast<int>(in[2] & 0xff);
  const int length = static_cast<int>(in[3] & 0xff);
  std::uint64_t result = width == 64 ? in[1] : in[1] & 0xffffffff;
  for (int i = 0; i < length && pos + i < width; ++i) {
    const std::uint64_t at = std::uint64_t{1} << (pos + i);
    result = (in[0] >> i & 1) != 0 ? result | at : result & ~at;
  }
  return result;
}

TEST(SemanticsBits, FieldsFollowTheManualsLoops) {
  compare("bfe.u32", [](const Lane& in) { return extracted(in[0], in[1], in[2], 32, false); });
  compare("bfe.s32", [](const Lane& in) { return extracted(in[0], in[1], in[2], 32, true); });
  compare("bfe.u64", [](const Lane& in) { return extracted(in[0], in[1], in[2], 64, false); });
  compare("bfe.s64", [](const Lane& in) { return extracted(in[0], in[1], in[2], 64, true); });
  compare("bfi.b32", [](const Lane& in) { return inserted(in, 32); });
  compare("bfi.b64", [](const Lane& in) { return inserted(in, 64); });
}

TEST(SemanticsBits, ShiftsClampTheirAmount) {
  const auto n = [](const Lane& in) { return in[1] & 0xffffffff; };
  const auto low = [](const Lane& in) { return in[0] & 0xffffffff; };
  compare("shl.b32",
          [&](const Lane& in) { return n(in) < 32 ? low(in) << n(in) & 0xffffffff : 0; });
  compare("shl.b64", [&](const Lane& in) { return n(in) < 64 ? in[0] << n(in) : 0; });
  compare("shr.u32", [&](const Lane& in) { return n(in) < 32 ? low(in) >> n(in) : 0; });
  compare("shr.u64", [&](const Lane& in) { return n(in) < 64 ? in[0] >> n(in) : 0; });
  compare("shr.s64", [&](const Lane& in) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(in[0]) >>
                                      std::min<std::uint64_t>(n(in), 63));
  });
  compare("shf.l.clamp.b32", [&](const Lane& in) {
    const std::uint64_t both = in[1] << 32 | low(in);
    return both << std::min<std::uint64_t>(in[2] & 0xffffffff, 32) >> 32;
  });
  compare("shf.r.wrap.b32", [&](const Lane& in) {
    const std::uint64_t both = in[1] << 32 | low(in);
    return both >> (in[2] & 31) & 0xffffffff;
  });
}

TEST(SemanticsBits, PermutationPicksBytesAndSigns) {
  compare("prmt.b32", [](const Lane& in) {
    std::uint64_t result = 0;
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t nibble = in[2] >> (4 * i) & 15;
      const std::uint64_t word = (nibble & 4) != 0 ? in[1] : in[0];
      const std::uint64_t byte = word >> (8 * (nibble & 3)) & 0xff;
      const std::uint64_t value = (nibble & 8) == 0 ? byte : (byte & 0x80) != 0 ? 0xff : 0;
      result |= value << (8 * i);
    }
    return result;
  });
}

TEST(SemanticsBits, EveryLookupTableOfThreeInputs) {
  for (const Isa isa : available_isas()) {
    Execution run("lop3.b32", isa);
    for (std::uint32_t table = 0; table < 256; ++table) {
      run.fill(0, 0xf0);
      run.fill(1, 0xcc);
      run.fill(2, 0xaa);
      run.fill(3, table);
      run.execute(0xffffffffu);
      ASSERT_EQ(run.result(17) & 0xff, table);  // bit i of the inputs spells i
    }
  }
}

TEST(SemanticsBits, LookupWithAPredicateTellsNonzero) {
  Execution run("lop3.or.b32");
  run.fill(0, 0xf0);
  run.fill(1, 0xcc);
  run.fill(2, 0xaa);
  run.fill(3, 0);
  for (int lane = 0; lane < 32; ++lane) {
    run.set(4, lane, lane == 3 ? 1 : 0);
    if (lane == 5) run.set(0, lane, 0);
  }
  run.fill(3, 0x80);  // a & b & c
  run.execute(0xffffffffu);
  EXPECT_EQ(run.result(0), 0x80u);
  EXPECT_EQ(run.result(0, 1), 1u);
  EXPECT_EQ(run.result(3, 1), 1u);
  EXPECT_EQ(run.result(5, 1), 0u);
}

TEST(SemanticsBits, DivisionIsExact) {
  const auto u = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto s = [](std::uint64_t x) {
    return static_cast<std::int64_t>(static_cast<std::int32_t>(x));
  };
  compare("div.u32",
          [&](const Lane& in) { return u(in[1]) == 0 ? 0xffffffff : u(in[0]) / u(in[1]); });
  compare("rem.u32",
          [&](const Lane& in) { return u(in[1]) == 0 ? u(in[0]) : u(in[0]) % u(in[1]); });
  compare("div.s32", [&](const Lane& in) {
    return u(in[1]) == 0 ? 0xffffffff : u(static_cast<std::uint64_t>(s(in[0]) / s(in[1])));
  });
  compare("rem.s32", [&](const Lane& in) {
    return u(in[1]) == 0 ? u(in[0]) : u(static_cast<std::uint64_t>(s(in[0]) % s(in[1])));
  });
  compare("div.u64", [](const Lane& in) { return in[1] == 0 ? ~std::uint64_t{0} : in[0] / in[1]; });
}

TEST(SemanticsBits, DivisionOfNeighboursOfMultiplesIsExact) {
  std::mt19937 random(1);
  for (const Isa isa : available_isas()) {
    Execution run("div.u32", isa);
    for (int round = 0; round < 2000; ++round) {
      std::uint32_t a[32], b[32];
      for (int lane = 0; lane < 32; ++lane) {
        b[lane] = static_cast<std::uint32_t>(random() >> random() % 31) | 1;
        a[lane] = b[lane] * static_cast<std::uint32_t>(random() %
                                                       (std::uint64_t{0xffffffff} / b[lane] + 1)) -
                  random() % 2;
        run.set(0, lane, a[lane]);
        run.set(1, lane, b[lane]);
      }
      run.execute(0xffffffffu);
      for (int lane = 0; lane < 32; ++lane)
        ASSERT_EQ(run.result(lane), a[lane] / b[lane]) << a[lane] << "/" << b[lane];
    }
  }
}

struct Comparison {
  const char* word;
  bool less, equal, greater, unordered;
};
const Comparison kComparisons[] = {
    {"eq", false, true, false, false}, {"ne", true, false, true, false},
    {"lt", true, false, false, false}, {"le", true, true, false, false},
    {"gt", false, false, true, false}, {"ge", false, true, true, false},
    {"equ", false, true, false, true}, {"neu", true, false, true, true},
    {"ltu", true, false, false, true}, {"leu", true, true, false, true},
    {"gtu", false, false, true, true}, {"geu", false, true, true, true},
    {"num", true, true, true, false},  {"nan", false, false, false, true},
};

TEST(SemanticsBits, FloatComparisonsKnowUnordered) {
  struct Type {
    const char* name;
    std::uint64_t one, two, nan;
  };
  const Type types[] = {{"f32", 0x3f800000, 0x40000000, 0x7fc00000},
                        {"f64", 0x3ff0000000000000, 0x4000000000000000, 0x7ff8000000000000},
                        {"f16", 0x3c00, 0x4000, 0x7e00},
                        {"bf16", 0x3f80, 0x4000, 0x7fc0}};
  for (const Isa isa : available_isas()) {
    for (const Type& type : types) {
      for (const Comparison& comparison : kComparisons) {
        Execution run(std::string("setp.") + comparison.word + "." + type.name, isa);
        ASSERT_TRUE(run.meaning) << comparison.word << type.name;
        const std::uint64_t pairs[4][2] = {
            {type.one, type.two}, {type.two, type.two}, {type.two, type.one}, {type.nan, type.one}};
        for (int lane = 0; lane < 32; ++lane) {
          run.set(0, lane, pairs[lane % 4][0]);
          run.set(1, lane, pairs[lane % 4][1]);
        }
        run.execute(0xffffffffu);
        const bool expected[4] = {comparison.less, comparison.equal, comparison.greater,
                                  comparison.unordered};
        for (int lane = 0; lane < 32; ++lane) {
          EXPECT_EQ(run.result(lane), expected[lane % 4] ? 1u : 0u)
              << comparison.word << "." << type.name << " lane " << lane;
          EXPECT_EQ(run.result(lane, 1), expected[lane % 4] ? 0u : 1u) << "q is the complement";
        }
      }
    }
  }
}

TEST(SemanticsBits, ComparisonsCombineWithAPredicate) {
  for (const Isa isa : available_isas()) {
    Execution run("setp.lt.xor.s32", isa);
    for (int lane = 0; lane < 32; ++lane) {
      run.set(0, lane, static_cast<std::uint64_t>(lane % 2));
      run.set(1, lane, 1);
      run.set(2, lane, static_cast<std::uint64_t>(lane / 2 % 2));
    }
    run.execute(0xffffffffu);
    for (int lane = 0; lane < 32; ++lane) {
      const bool less = lane % 2 < 1;
      const bool c = lane / 2 % 2 != 0;
      EXPECT_EQ(run.result(lane) != 0, less != c);
      EXPECT_EQ(run.result(lane, 1) != 0, !less != c);
    }
    Execution set("set.gt.f32.u32", isa);
    set.fill(0, 0xffffffff);
    set.fill(1, 1);
    set.execute(0xffffffffu);
    EXPECT_EQ(set.result(0), 0x3f800000u);
    Execution pair("set.eq.f16x2.f16x2", isa);
    pair.fill(0, 0x3c00'7e00);
    pair.fill(1, 0x3c00'7e00);
    pair.execute(0xffffffffu);
    EXPECT_EQ(pair.result(0), 0x3c00'0000u);
    Execution halves("setp.lt.f16x2", isa);
    halves.fill(0, 0x3c00'4000);
    halves.fill(1, 0x4000'3c00);
    halves.execute(0xffffffffu);
    EXPECT_EQ(halves.result(0), 0u) << "p compares the low halves";
    EXPECT_EQ(halves.result(0, 1), 1u);
  }
}

__extension__ typedef unsigned __int128 Wide;

TEST(SemanticsBits, CarryChainsAddAndMultiplyLongNumbers) {
  std::mt19937_64 random(8);
  for (const Isa isa : available_isas()) {
    for (int round = 0; round < 500; ++round) {
      const std::uint64_t a = round % 3 == 0 ? ~std::uint64_t{0} : random();
      const std::uint64_t b = round % 5 == 0 ? 1 : random();
      const auto lane = static_cast<int>(random() % 32);
      const auto half = [](std::uint64_t x, int i) { return x >> (32 * i) & 0xffffffff; };
      const auto step = [&](const char* opcode, std::uint64_t x, std::uint64_t y, std::uint64_t z,
                            std::uint32_t& carry) {
        Execution run(opcode, isa);
        run.set(0, lane, x);
        run.set(1, lane, y);
        run.set(2, lane, z);
        run.carry = carry;
        run.execute(1u << lane);
        carry = run.carry;
        return run.result(lane);
      };
      std::uint32_t carry = 0x5a5a5a5a & ~(1u << lane);
      const std::uint64_t low = step("add.cc.u32", half(a, 0), half(b, 0), 0, carry);
      const std::uint64_t high = step("addc.cc.u32", half(a, 1), half(b, 1), 0, carry);
      EXPECT_EQ(high << 32 | low, a + b);
      EXPECT_EQ(carry >> lane & 1, static_cast<std::uint32_t>((Wide{a} + b) >> 64));
      EXPECT_EQ(carry & ~(1u << lane), 0x5a5a5a5a & ~(1u << lane));
      const std::uint64_t d0 = step("sub.cc.u32", half(a, 0), half(b, 0), 0, carry);
      const std::uint64_t d1 = step("subc.u32", half(a, 1), half(b, 1), 0, carry);
      EXPECT_EQ(d1 << 32 | d0, a - b);
      // The flag of a subtraction, read by an addition: __int128 division of nvcc does that.
      step("sub.cc.u64", a, b, 0, carry);
      EXPECT_EQ(step("addc.u64", 0, 0, 0, carry), a >= b ? 1U : 0U);
      // The upper half of a 64-bit product plus an addend, as compilers emit it.
      const std::uint64_t p0 = step("mad.lo.cc.u64", a, b, b, carry);
      const std::uint64_t p1 = step("madc.hi.u64", a, b, 0, carry);
      EXPECT_EQ(Wide{p1} << 64 | p0, Wide{a} * b + b);
    }
  }
}

TEST(SemanticsBits, VectorsPackAndUnpack) {
  alignas(128) std::uint32_t pieces[4][32];
  alignas(128) std::uint64_t whole[32];
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::uint32_t lane = 0; lane < 32; ++lane)
      pieces[i][lane] = 0xdead0000u + lane * 16 + static_cast<std::uint32_t>(i);
  }
  LaneArgs args;
  args.mask = 0xffffffffu;
  args.dst = {whole};
  args.src = {pieces[0], pieces[1], pieces[2], pieces[3]};
  resolve_pack(Type::b64, 4).fn(args);
  EXPECT_EQ(whole[2], 0x0023'0022'0021'0020u);
  args.src = {whole};
  args.dst = {nullptr, pieces[0], nullptr, pieces[1]};
  resolve_unpack(Type::b64, 4).fn(args);
  EXPECT_EQ(pieces[0][2], 0x21u);
  EXPECT_EQ(pieces[1][2], 0x23u);
  args.dst = {pieces[0], pieces[1]};
  resolve_unpack(Type::b64, 2).fn(args);
  EXPECT_EQ(pieces[0][2], 0x0021'0020u);
  EXPECT_EQ(pieces[1][2], 0x0023'0022u);
  EXPECT_FALSE(resolve_pack(Type::b64, 3));
}

TEST(SemanticsBits, UnknownOpcodesHaveNoMeaning) {
  for (const char* opcode :
       {"", "add", "ld.global.f32", "add.sat.u32", "fma.f32.f32", "cvt.rn.s32.f32", "mul.wide.u64",
        "add.u32.", "bra", "add.rq.f32", "setp.lt", "fma.rn.relu.f32"}) {
    EXPECT_FALSE(resolve(opcode)) << opcode;
  }
}

}  // namespace
}  // namespace tilewright::ptx::semantics
