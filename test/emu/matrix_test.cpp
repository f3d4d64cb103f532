// SPDX-License-Identifier: Apache-2.0
// mma, wmma and wgmma with narrow and sparse operands, against integer products.
#include "emu/bench.h"

#include <bit>
#include <gtest/gtest.h>
#include <random>

namespace tilewright::emu {
namespace {

using test::Kernel;
using test::Outcome;
using Words = std::vector<std::uint32_t>;

struct Matrix {
  int rows = 0, cols = 0;
  std::vector<int> value;

  Matrix(int r, int c)
      : rows(r), cols(c), value(static_cast<std::size_t>(r) * static_cast<std::size_t>(c)) {}
  int& at(int r, int c) { return value[static_cast<std::size_t>(r * cols + c)]; }
  int at(int r, int c) const { return value[static_cast<std::size_t>(r * cols + c)]; }
};

/// Element types, by the integers that a test gives them: all are exact in every format.
struct Element {
  std::string name;
  int bits, least, most;
};
const Element kF16{"f16", 16, -8, 8}, kBf16{"bf16", 16, -8, 8}, kTf32{"tf32", 32, -8, 8},
    kS8{"s8", 8, -128, 127}, kU8{"u8", 8, 0, 255}, kS4{"s4", 4, -8, 7}, kU4{"u4", 4, 0, 15},
    kB1{"b1", 1, 0, 1}, kE4m3{"e4m3", 8, -8, 8};

std::uint32_t encode(const Element& e, int v) {
  const auto f = std::bit_cast<std::uint32_t>(static_cast<float>(v));
  if (e.name == "tf32") return f;
  if (e.name == "bf16") return f >> 16;
  const std::uint32_t exponent = f >> 23 & 255;
  if (e.name == "f16")
    return v == 0 ? 0 : (f >> 16 & 0x8000) | (exponent - 112) << 10 | (f >> 13 & 0x3ff);
  if (e.name == "e4m3")
    return v == 0 ? 0 : (f >> 24 & 0x80) | (exponent - 120) << 3 | (f >> 20 & 7);
  return static_cast<std::uint32_t>(v) & ((1U << e.bits) - 1);
}

Matrix random_matrix(int rows, int cols, const Element& e, std::mt19937& random) {
  Matrix m(rows, cols);
  for (int& v : m.value)
    v = e.least + static_cast<int>(random() % static_cast<unsigned>(e.most - e.least + 1));
  return m;
}

Matrix product(const Matrix& a, const Matrix& b, const Matrix& c, bool differing_bits) {
  Matrix d = c;
  for (int i = 0; i < a.rows; ++i) {
    for (int j = 0; j < b.cols; ++j) {
      for (int k = 0; k < a.cols; ++k) {
        d.at(i, j) += differing_bits ? a.at(i, k) ^ b.at(k, j) : a.at(i, k) * b.at(k, j);
      }
    }
  }
  return d;
}

/// PTX ISA: lane (g, t) has runs of consecutive k, rows g and g + 8 of A, column g of B.
Words pack_a(const Matrix& a, const Element& e) {
  const int pack = 32 / e.bits, row_blocks = a.rows / 8, regs = a.rows * a.cols / pack / 32;
  Words out(static_cast<std::size_t>(32 * regs));
  for (int i = 0; i < 32 * regs * pack; ++i) {
    const int lane = i / (regs * pack), r = i / pack % regs, part = i % pack;
    const int row = lane / 4 + 8 * (r % row_blocks);
    const int col = r / row_blocks * 4 * pack + lane % 4 * pack + part;
    out[static_cast<std::size_t>(i / pack)] |= encode(e, a.at(row, col)) << (part * e.bits);
  }
  return out;
}
Matrix transposed(const Matrix& m) {
  Matrix out(m.cols, m.rows);
  for (int r = 0; r < m.rows; ++r) {
    for (int c = 0; c < m.cols; ++c)
      out.at(c, r) = m.at(r, c);
  }
  return out;
}
Words pack_b(const Matrix& b, const Element& e) { return pack_a(transposed(b), e); }
/// Accumulators of 8 columns: (g, 2t), (g, 2t + 1), then the same of row g + 8.
Words pack_c(const Matrix& c, bool floats) {
  Words out;
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < c.rows / 4; ++i) {
      const int v = c.at(lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2);
      out.push_back(floats ? std::bit_cast<std::uint32_t>(static_cast<float>(v))
                           : static_cast<std::uint32_t>(v));
    }
  }
  return out;
}

/// A sparse matrix: what is kept, and the metadata register of each lane.
struct Sparse {
  Matrix full, kept;
  Words metadata;
};
/// The figures of the manual: lanes that the selector does not name hold what would be wrong.
Sparse random_sparse(int k, const Element& e, int selector, std::mt19937& random) {
  Sparse s{Matrix(16, k), random_matrix(16, k / 2, e, random), Words(32)};
  const bool tf32 = e.name == "tf32";
  const int unit = e.bits == 4 ? 2 : 1, width = tf32 ? 4 : 2;
  const int bits = k / 2 / unit * width, lanes = bits / 16;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const int in_group = static_cast<int>(lane % 4);
    if (in_group < selector * lanes || in_group >= (selector + 1) * lanes) s.metadata[lane] = ~0U;
  }
  for (int row = 0; row < 16; ++row) {
    int previous = 0;
    for (int i = 0; i < k / 2 / unit; ++i) {  // indices, in pairs of two different ones
      const int first = tf32 ? 0 : static_cast<int>(random() % 3);
      const int second =
          tf32 ? 0 : first + 1 + static_cast<int>(random() % (3U - static_cast<unsigned>(first)));
      int index = i % 2 == 0 ? first : previous;
      if (i % 2 == 0) previous = second;
      int column = i / 2 * 4 * unit + index * unit;
      if (tf32) {
        index = random() % 2 == 0 ? 0b0100 : 0b1110;
        column = 2 * i + (index == 0b1110 ? 1 : 0);
      }
      for (int u = 0; u < unit; ++u)
        s.full.at(row, column + u) = s.kept.at(row, i * unit + u);
      const int at = i * width;
      const bool halves = e.bits >= 16;
      const int in_group = lanes * selector + (halves ? at / 16 : at / 32 * 2 + row / 8);
      const int shift = halves ? row / 8 * 16 + at % 16 : at % 32;
      s.metadata[static_cast<std::size_t>(row % 8 * 4 + in_group)] |=
          static_cast<std::uint32_t>(index) << shift;
    }
  }
  return s;
}

std::string list(int first, int count) {
  std::string out = "{";
  for (int i = 0; i < count; ++i)
    out += (i == 0 ? "%r" : ", %r") + std::to_string(first + i);
  return out + "}";
}
/// Loads `count` words of the thread from buffer `b` into %r`first`, ...
std::string load(int b, int first, int count) {
  std::string out = "mul.wide.u32 %rd20, %r0, " + std::to_string(4 * count) +
                    ";\nadd.s64 %rd21, %rd" + std::to_string(b) + ", %rd20;\n";
  for (int i = 0; i < count; ++i) {
    out += "ld.global.u32 %r" + std::to_string(first + i) + ", [%rd21+" + std::to_string(4 * i) +
           "];\n";
  }
  return out;
}
std::string store(int b, int first, int count) {
  std::string out = "mul.wide.u32 %rd20, %r0, " + std::to_string(4 * count) +
                    ";\nadd.s64 %rd21, %rd" + std::to_string(b) + ", %rd20;\n";
  for (int i = 0; i < count; ++i) {
    out += "st.global.u32 [%rd21+" + std::to_string(4 * i) + "], %r" + std::to_string(first + i) +
           ";\n";
  }
  return out;
}

struct MatrixRow {
  std::string name, opcode;
  int m, k;
  Element a, b;
  int selector = -1;  ///< sparse if not negative
};
std::ostream& operator<<(std::ostream& out, const MatrixRow& row) { return out << row.name; }

std::vector<MatrixRow> mma_rows() {
  const std::string s32 = ".s32", mma = "mma.sync.aligned.", sp = "mma.sp.sync.aligned.",
                    ordered = "mma.sp::ordered_metadata.sync.aligned.";
  return {
      {"F16", mma + "m16n8k16.row.col.f32.f16.f16.f32", 16, 16, kF16, kF16},
      {"Bf16", mma + "m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, kBf16, kBf16},
      {"Tf32", mma + "m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, kTf32, kTf32},
      {"E4m3", mma + "m16n8k32.row.col.f32.e4m3.e4m3.f32", 16, 32, kE4m3, kE4m3},
      {"S8", mma + "m16n8k32.row.col.s32.s8.u8.s32", 16, 32, kS8, kU8},
      {"S4Of8Rows", mma + "m8n8k32.row.col.s32.s4.s4.s32", 8, 32, kS4, kS4},
      {"U4ByS4", mma + "m16n8k32.row.col.s32.u4.s4.s32", 16, 32, kU4, kS4},
      {"S4ByU4", mma + "m16n8k64.row.col.s32.s4.u4.s32", 16, 64, kS4, kU4},
      {"DifferingBitsOf8Rows", mma + "m8n8k128.row.col.s32.b1.b1.s32.xor.popc", 8, 128, kB1, kB1},
      {"CommonBits", mma + "m16n8k128.row.col.s32.b1.b1.s32.and.popc", 16, 128, kB1, kB1},
      {"DifferingBits", mma + "m16n8k256.row.col.s32.b1.b1.s32.xor.popc", 16, 256, kB1, kB1},
      {"SparseF16First", sp + "m16n8k16.row.col.f32.f16.f16.f32", 16, 16, kF16, kF16, 0},
      {"SparseF16Last", sp + "m16n8k16.row.col.f32.f16.f16.f32", 16, 16, kF16, kF16, 3},
      {"SparseF16Wide", sp + "m16n8k32.row.col.f32.f16.f16.f32", 16, 32, kF16, kF16, 1},
      {"SparseBf16Ordered", ordered + "m16n8k32.row.col.f32.bf16.bf16.f32", 16, 32, kBf16, kBf16,
       0},
      {"SparseTf32", sp + "m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, kTf32, kTf32, 2},
      {"SparseTf32Wide", sp + "m16n8k16.row.col.f32.tf32.tf32.f32", 16, 16, kTf32, kTf32, 1},
      {"SparseS8", sp + "m16n8k32.row.col.s32.s8.s8.s32", 16, 32, kS8, kS8, 1},
      {"SparseS8Wide", sp + "m16n8k64.row.col.s32.s8.u8.s32", 16, 64, kS8, kU8, 0},
      {"SparseE4m3", ordered + "m16n8k64.row.col.f32.e4m3.e4m3.f32", 16, 64, kE4m3, kE4m3, 0},
      {"SparseS4", sp + "m16n8k64.row.col.s32.s4.s4.s32", 16, 64, kS4, kS4, 1},
      {"SparseU4Wide", sp + "m16n8k128.row.col.s32.u4.s4.s32", 16, 128, kU4, kS4, 0},
  };
}

class Mma : public testing::TestWithParam<MatrixRow> {};

TEST_P(Mma, MultipliesIntegersExactly) {
  const MatrixRow& row = GetParam();
  std::mt19937 random(7);
  const bool sparse = row.selector >= 0, floats = row.opcode.find(".f32") != std::string::npos;
  const Sparse s = sparse ? random_sparse(row.k, row.a, row.selector, random)
                          : Sparse{Matrix(0, 0), Matrix(0, 0), Words(32)};
  const Matrix a = sparse ? s.full : random_matrix(row.m, row.k, row.a, random);
  const Matrix b = random_matrix(row.k, 8, row.b, random);
  const Matrix c = random_matrix(row.m, 8, kS8, random);
  const std::vector<Words> in = {pack_a(sparse ? s.kept : a, row.a), pack_b(b, row.b),
                                 pack_c(c, floats), s.metadata};
  auto registers = [&](std::size_t i) { return static_cast<int>(in[i].size() / 32); };
  Kernel k;
  for (const Words& words : in)
    k.buffers.push_back(static_cast<std::int64_t>(words.size() * 4));
  k.body = load(0, 10, registers(0)) + load(1, 20, registers(1)) + load(2, 30, registers(2)) +
           load(3, 40, 1) + row.opcode + " " + list(30, registers(2)) + ", " +
           list(10, registers(0)) + ", " + list(20, registers(1)) + ", " + list(30, registers(2)) +
           (sparse ? ", %r40, " + std::to_string(row.selector) : "") + ";\n" +
           store(2, 30, registers(2));
  const Outcome out = test::run(k, {}, in);
  EXPECT_TRUE(out.report.ok()) << out.text();
  const bool differing = row.opcode.find(".xor") != std::string::npos;
  EXPECT_EQ(out.words[2], pack_c(product(a, b, c, differing), floats));
}

INSTANTIATE_TEST_SUITE_P(Types, Mma, testing::ValuesIn(mma_rows()),
                         [](const auto& row) { return row.param.name; });

/// A row that names the same element of a chunk twice.
TEST(SparseMma, ReportsMetadataThatTheManualLeavesUndefined) {
  Kernel k;
  k.body =
      "mov.b32 %r10, 0;\nmov.b32 %r11, META;\n"
      "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r10, %r10}, "
      "{%r10, %r10}, {%f4, %f4, %f4, %f4}, %r11, 0;";
  k.body.replace(k.body.find("META"), 4, "0x44444445");
  const Outcome out = test::run(k);
  ASSERT_EQ(out.kinds(), "illegal_instruction") << out.text();
  EXPECT_EQ(out.report.findings[0].severity, Severity::undefined);
  EXPECT_NE(out.report.findings[0].message.find(
                "has metadata 0x4445 for row 0, which does not keep two different elements"),
            std::string::npos)
      << out.text();
  k.body.replace(k.body.find("0x44444445"), 10, "0x44444444");
  EXPECT_EQ(test::run(k).kinds(), "");
}

struct WmmaRow {
  std::string name, shape, ab, types, operation;
  int k;
  Element a;
};
std::ostream& operator<<(std::ostream& out, const WmmaRow& row) { return out << row.name; }

class Wmma : public testing::TestWithParam<WmmaRow> {};

/// a is row-major and b column-major: both have k in consecutive bits.
TEST_P(Wmma, MultipliesSubByteIntegers) {
  const WmmaRow& row = GetParam();
  std::mt19937 random(3);
  const Matrix a = random_matrix(8, row.k, row.a, random),
               b = random_matrix(row.k, 8, row.a, random);
  auto bits_of = [&](const Matrix& m) {
    Words out(32);
    const int pack = 32 / row.a.bits;
    for (int i = 0; i < 8 * row.k; ++i) {
      out[static_cast<std::size_t>(i / pack)] |= encode(row.a, m.at(i / row.k, i % row.k))
                                                 << (i % pack * row.a.bits);
    }
    return out;
  };
  Kernel k;
  k.buffers = {128, 128, 256};
  const std::string shape = "." + row.shape, stride = std::to_string(row.k);
  k.body = "wmma.load.a.sync.aligned.row" + shape + ".global" + row.ab + " {%r10}, [%rd0], " +
           stride + ";\nwmma.load.b.sync.aligned.col" + shape + ".global" + row.ab +
           " {%r11}, [%rd1], " + stride + ";\nmov.b32 %r12, 1;\nmov.b32 %r13, 1;\nwmma.mma" +
           row.operation + ".sync.aligned.row.col" + shape + row.types +
           " {%r12, %r13}, {%r10}, {%r11}, {%r12, %r13};\n" + "wmma.store.d.sync.aligned.row" +
           shape + ".global.s32 [%rd2], {%r12, %r13}, 8;";
  const Outcome out = test::run(k, {}, {bits_of(a), bits_of(transposed(b))});
  EXPECT_TRUE(out.report.ok()) << out.text();
  Matrix ones(8, 8);
  for (int& v : ones.value)
    v = 1;
  const Matrix d = product(a, b, ones, row.operation == ".xor.popc");
  EXPECT_EQ(out.words[2], Words(d.value.begin(), d.value.end()));
}

INSTANTIATE_TEST_SUITE_P(
    Types, Wmma,
    testing::Values(
        WmmaRow{"S4", "m8n8k32", ".s4", ".s32.s4.s4.s32", "", 32, kS4},
        WmmaRow{"U4", "m8n8k32", ".u4", ".s32.u4.u4.s32", "", 32, kU4},
        WmmaRow{"DifferingBits", "m8n8k128", ".b1", ".s32.b1.b1.s32", ".xor.popc", 128, kB1},
        WmmaRow{"CommonBits", "m8n8k128", ".b1", ".s32.b1.b1.s32", ".and.popc", 128, kB1}),
    [](const auto& row) { return row.param.name; });

/// K-major without swizzle: blocks of 8 rows of 16 bytes, those of a row 128 bytes apart.
Words image(const Matrix& m, const Element& e) {
  const int row_bytes = m.cols * e.bits / 8;
  Words out(static_cast<std::size_t>(m.rows * row_bytes / 4));
  for (int r = 0; r < m.rows; ++r) {
    for (int c = 0; c < m.cols; ++c) {
      const int bit = c * e.bits, byte = bit / 8;
      const int at = r / 8 * 8 * row_bytes + byte / 16 * 128 + r % 8 * 16 + byte % 16;
      out[static_cast<std::size_t>(at / 4)] |= encode(e, m.at(r, c)) << (at % 4 * 8 + bit % 8);
    }
  }
  return out;
}

struct WgmmaRow {
  std::string name, opcode, behind_b;
  int k;
  Element a;
  bool sparse;
};
std::ostream& operator<<(std::ostream& out, const WgmmaRow& row) { return out << row.name; }

class Wgmma : public testing::TestWithParam<WgmmaRow> {};

TEST_P(Wgmma, MultipliesIntegersExactly) {
  const WgmmaRow& row = GetParam();
  std::mt19937 random(5);
  Matrix full(64, row.k), kept(64, row.sparse ? row.k / 2 : row.k);
  Words metadata(128);
  for (int warp = 0; warp < 4; ++warp) {
    const Sparse s = row.sparse ? random_sparse(row.k, row.a, row.a.bits >= 16 ? 1 : 0, random)
                                : Sparse{random_matrix(16, row.k, row.a, random), full, Words(32)};
    const Matrix& from = row.sparse ? s.kept : s.full;
    std::copy(s.full.value.begin(), s.full.value.end(), full.value.begin() + warp * 16 * row.k);
    std::copy(from.value.begin(), from.value.end(), kept.value.begin() + warp * 16 * kept.cols);
    std::copy(s.metadata.begin(), s.metadata.end(), metadata.begin() + warp * 32);
  }
  const Matrix b = random_matrix(row.k, 8, row.a, random);
  std::vector<Words> in = {image(kept, row.a), image(transposed(b), row.a), metadata, Words(512)};
  Kernel k;
  for (const Words& words : in)
    k.buffers.push_back(static_cast<std::int64_t>(words.size() * 4));
  k.block = {128, 1, 1};
  k.shared = ".shared .align 128 .b8 a[4096];\n.shared .align 128 .b8 b[1024];\n";
  auto copy = [&](int buffer, const std::string& to, std::size_t words) {
    const std::string n = std::to_string(buffer), loop = "COPY" + n;
    return "mov.u32 %r2, %r0;\n" + loop + ":\nsetp.ge.u32 %p1, %r2, " + std::to_string(words) +
           ";\n@%p1 bra D" + loop + ";\nmul.wide.u32 %rd20, %r2, 4;\nadd.s64 %rd21, %rd" + n +
           ", %rd20;\nld.global.u32 %r3, [%rd21];\nshl.b32 %r4, %r2, 2;\nmov.u32 %r5, " + to +
           ";\nadd.u32 %r5, %r5, %r4;\nst.shared.u32 [%r5], %r3;\nadd.u32 %r2, %r2, 128;\nbra " +
           loop + ";\nD" + loop + ":\n";
  };
  auto descriptor = [](const std::string& to, const std::string& of, int row_bytes) {
    const std::uint64_t strides =
        std::uint64_t{128 / 16} << 16 | static_cast<std::uint64_t>(row_bytes * 8 / 16) << 32;
    return "mov.u32 %r2, " + of + ";\nshr.u32 %r2, %r2, 4;\ncvt.u64.u32 " + to + ", %r2;\nor.b64 " +
           to + ", " + to + ", " + std::to_string(strides) + ";\n";
  };
  k.body = copy(0, "a", in[0].size()) + copy(1, "b", in[1].size()) +
           "fence.proxy.async.shared::cta;\nbar.sync 0;\n" + load(2, 40, 1) +
           descriptor("%rd30", "a", kept.cols * row.a.bits / 8) +
           descriptor("%rd31", "b", row.k * row.a.bits / 8) +
           "setp.ne.u32 %p2, 0, 0;\nwgmma.fence.sync.aligned;\n" + row.opcode +
           " {%r10, %r11, %r12, %r13}, %rd30, %rd31" + row.behind_b + ";\n" +
           "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" + store(3, 10, 4);
  const Outcome out = test::run(k, {}, in);
  EXPECT_TRUE(out.report.ok()) << out.text();
  const Matrix d = product(full, b, Matrix(64, 8), false);
  Words expected;
  for (int warp = 0; warp < 4; ++warp) {
    Matrix part(16, 8);
    std::copy(d.value.begin() + warp * 128, d.value.begin() + (warp + 1) * 128, part.value.begin());
    const Words words = pack_c(part, row.opcode.find(".f32") != std::string::npos);
    expected.insert(expected.end(), words.begin(), words.end());
  }
  EXPECT_EQ(out.words[3], expected);
}

const std::string kWgmma = "wgmma.mma_async.sync.aligned.",
                  kWgmmaSp = "wgmma.mma_async.sp.sync.aligned.";
INSTANTIATE_TEST_SUITE_P(
    Types, Wgmma,
    testing::Values(
        WgmmaRow{"S8", kWgmma + "m64n8k32.s32.s8.s8", ", %p2", 32, kS8, false},
        WgmmaRow{"E4m3", kWgmma + "m64n8k32.f32.e4m3.e4m3", ", %p2, 1, 1", 32, kE4m3, false},
        WgmmaRow{"CommonBits", kWgmma + "m64n8k256.s32.b1.b1.and.popc", ", %p2", 256, kB1, false},
        WgmmaRow{"SparseF16", kWgmmaSp + "m64n8k32.f32.f16.f16", ", %r40, 1, %p2, 1, 1, 0, 0", 32,
                 kF16, true},
        WgmmaRow{"SparseTf32", kWgmmaSp + "m64n8k16.f32.tf32.tf32", ", %r40, 1, %p2, 1, 1", 16,
                 kTf32, true},
        WgmmaRow{"SparseE4m3", kWgmmaSp + "m64n8k64.f32.e4m3.e4m3", ", %r40, 0, %p2, 1, 1", 64,
                 kE4m3, true},
        WgmmaRow{"SparseS8", kWgmmaSp + "m64n8k64.s32.s8.s8", ", %r40, 0, %p2", 64, kS8, true}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace tilewright::emu
