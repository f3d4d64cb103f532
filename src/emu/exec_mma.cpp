// SPDX-License-Identifier: Apache-2.0
// mma.sync: one layout rule serves every shape, since registers pack consecutive k.
#include "emu/gather.h"
#include "emu/handlers.h"
#include "emu/mma_shape.h"
#include "emu/number.h"
#include "emu/sparse.h"
#include "emu/tile.h"

#include <bit>

namespace tilewright::emu::detail {

namespace {

Arithmetic read_types(const Inst& in) {
  const ptx::Opcode& op = *in.info->opcode;
  Arithmetic how;
  how.d = element(op, 0);
  how.a = element(op, 1);
  how.b = element(op, 2);
  how.c = element(op, 3);
  how.saturate = in.info->has<"satfinite">();
  how.bits_xor = in.info->has<"xor">();
  return how;
}

std::uint64_t element_bits(std::uint64_t word, int index, int width) {
  if (width == 64) return word;
  return word >> (index * width) & ((std::uint64_t{1} << width) - 1);
}

/// A: register i of lane (g, t) holds row g + 8 (i mod rows/8), and a run of consecutive k.
Tile read_a(Exec& x, const Inst& in, MmaShape s, Element type) {
  Tile out(s.m, s.k);
  const int width = type.bits, pack = width == 64 ? 1 : 32 / width, row_blocks = s.m / 8;
  const int regs = in.info->count[1];
  for (int i = 0; i < regs; ++i) {
    const Slot& slot = in.slot_at(1, i);
    for (int lane = 0; lane < 32; ++lane) {
      const std::uint64_t word = x.value(slot, static_cast<unsigned>(lane));
      const int row = lane / 4 + 8 * (i % row_blocks);
      for (int e = 0; e < pack; ++e) {
        const int k = i / row_blocks * 4 * pack + lane % 4 * pack + e;
        out.value[out.at(row, k)] = decode_number(type, element_bits(word, e, width));
        out.defined[out.at(row, k)] = x.defined(slot) >> lane & 1;
      }
    }
  }
  return out;
}

Tile read_b(Exec& x, const Inst& in, MmaShape s, Element type) {
  Tile out(s.k, s.n);
  const int width = type.bits, pack = width == 64 ? 1 : 32 / width;
  for (int i = 0; i < in.info->count[2]; ++i) {
    const Slot& slot = in.slot_at(2, i);
    for (int lane = 0; lane < 32; ++lane) {
      const std::uint64_t word = x.value(slot, static_cast<unsigned>(lane));
      for (int e = 0; e < pack; ++e) {
        const int k = i * 4 * pack + lane % 4 * pack + e;
        out.value[out.at(k, lane / 4)] = decode_number(type, element_bits(word, e, width));
        out.defined[out.at(k, lane / 4)] = x.defined(slot) >> lane & 1;
      }
    }
  }
  return out;
}

/// A sparse A in full: the registers hold its kept half as they hold an A of half the columns.
Tile read_sparse_a(Exec& x, const Inst& in, MmaShape s, const Arithmetic& how) {
  const bool ordered = in.info->has<"sp::ordered_metadata">();
  const auto selector = static_cast<int>(x.value(in.slot_at(5, 0), 0));
  const SparseOperand sparse{how.a, s.k, selector, ordered};
  const SparseRows rows = sparse_rows(x, in.slot_at(4, 0), sparse);
  check_sparse_rows(x, rows, sparse);
  const Tile kept = read_a(x, in, {s.m, s.n, s.k / 2}, how.a);
  Tile out(s.m, s.k);
  for (int r = 0; r < s.m; ++r) {
    for (int c = 0; c < s.k / 2; ++c) {
      const std::size_t to = out.at(r, sparse_column(sparse, rows[static_cast<std::size_t>(r)], c));
      out.value[to] = kept.value[kept.at(r, c)];
      out.defined[to] = kept.defined[kept.at(r, c)];
    }
  }
  return out;
}

/// Calls `each(slot, element in the register, row, column)` for an accumulator's elements.
template <class Each>
void for_each_accumulator(const Inst& in, int operand, Element type, unsigned lane, Each each) {
  const int pack = type.bits == 16 ? 2 : 1;
  const int g = static_cast<int>(lane / 4), t = static_cast<int>(lane % 4);
  for (int i = 0; i < in.info->count[static_cast<std::size_t>(operand)] * pack; ++i) {
    each(in.slot_at(operand, i / pack), i % pack, g + 8 * (i / 2), 2 * t + i % 2);
  }
}

Tile read_c(Exec& x, const Inst& in, MmaShape s, Element type) {
  Tile out(s.m, s.n);
  for (unsigned lane = 0; lane < 32; ++lane) {
    for_each_accumulator(in, 3, type, lane, [&](const Slot& slot, int e, int r, int c) {
      const std::uint64_t word = x.value(slot, lane);
      const int width = type.bits;
      out.value[out.at(r, c)] = decode_number(type, element_bits(word, e, width));
      out.defined[out.at(r, c)] = x.defined(slot) >> lane & 1;
    });
  }
  return out;
}

void write_d(Exec& x, const Inst& in, const Tile& d, const Arithmetic& how) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    for_each_accumulator(in, 0, how.d, lane, [&](const Slot& slot, int e, int r, int c) {
      std::uint64_t word = encode_number(how.d.type, d.value[d.at(r, c)], how.saturate);
      const bool defined =
          d.defined[d.at(r, c)] != 0 && (e == 0 || (x.defined(slot) >> lane & 1) != 0);
      if (how.d.type == Type::f16) {
        const std::uint64_t old = e == 0 ? 0 : x.value(slot, lane);
        word = old | word << (16 * e);
      }
      x.set(slot, lane, word);
      if (!defined) x.defined(slot) &= ~(1U << lane);
    });
  }
}

}  // namespace

Flow exec_mma(Exec& x, const Inst& in) {
  const ptx::Opcode& op = *in.info->opcode;
  const MmaShape s = read_mma_shape(op);
  const Arithmetic how = read_types(in);
  const bool sparse = in.info->has<"sp">() || in.info->has<"sp::ordered_metadata">();
  if (gather_aligned(x) == Gather::wait) return Flow::stop;
  x.grid->report.counters.tensor_ops += static_cast<std::uint64_t>(2 * s.m * s.n * s.k);
  const Tile a = sparse ? read_sparse_a(x, in, s, how) : read_a(x, in, s, how.a);
  const Tile b = read_b(x, in, s, how.b), c = read_c(x, in, s, how.c);
  write_d(x, in, multiply(a, b, c, how), how);
  return Flow::next;
}

}  // namespace tilewright::emu::detail
