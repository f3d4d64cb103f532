// SPDX-License-Identifier: Apache-2.0
// wmma: the fragments' layout is opaque, so elements lie in order of lane, register, part.
#include "emu/access.h"
#include "emu/gather.h"
#include "emu/handlers.h"
#include "emu/mma_shape.h"
#include "emu/number.h"
#include "emu/tile.h"

#include <bit>
#include <cstring>

namespace tilewright::emu::detail {

namespace {

/// Elements a register holds: tf32 and f32 one, f16 two, s8 four, s4 eight.
int pack_of(Element type) { return type.bits >= 32 ? 1 : 32 / type.bits; }

/// Calls `each(lane, register, part, element)` for a fragment of `count` elements; fragments with
/// room for more repeat them.
template <class Each>
void for_each_element(int registers, Element type, int count, Each each) {
  const int pack = pack_of(type);
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < registers; ++r) {
      for (int e = 0; e < pack; ++e) {
        each(static_cast<unsigned>(lane), r, e, ((lane * registers + r) * pack + e) % count);
      }
    }
  }
}

Tile read_fragment(Exec& x, const Inst& in, int operand, Element type, int rows, int cols) {
  Tile out(rows, cols);
  const int width = 32 / pack_of(type);
  for_each_element(in.info->count[static_cast<std::size_t>(operand)], type, rows * cols,
                   [&](unsigned lane, int r, int e, int i) {
                     const Slot& s = in.slot_at(operand, r);
                     std::uint64_t word = x.value(s, lane);
                     if (width < 32) word = word >> (e * width) & ((1U << width) - 1);
                     out.value[static_cast<std::size_t>(i)] = decode_number(type, word);
                     out.defined[static_cast<std::size_t>(i)] = x.defined(s) >> lane & 1;
                   });
  return out;
}

void write_element(Exec& x, const Slot& s, unsigned lane, Element type, int e, std::uint64_t bits,
                   bool defined) {
  const int width = type.bits;
  std::uint64_t word = bits;
  if (width < 32) {
    const std::uint64_t keep = ((std::uint64_t{1} << width) - 1) << (e * width);
    word = (x.value(s, lane) & ~keep) | (bits << (e * width) & keep);
  }
  const bool before = e == 0 || (x.defined(s) >> lane & 1) != 0;
  x.set(s, lane, word);
  if (!defined || !before) x.defined(s) &= ~(1U << lane);
}

struct Layout {
  int rows = 0, cols = 0;
  bool row_major = true;
  std::int64_t stride = 0;  ///< elements

  std::int64_t offset(int i) const {
    const int r = i / cols, c = i % cols;
    return row_major ? r * stride + c : c * stride + r;
  }
};

Layout layout_of(Exec& x, const Inst& in, MmaShape s, int stride_operand) {
  Layout out;
  out.rows = in.info->has<"b">() ? s.k : s.m;
  out.cols = in.info->has<"a">() ? s.k : s.n;
  // The first of row and col is the matrix's own.
  out.row_major = in.info->has<"row">();
  out.stride = out.row_major ? out.cols : out.rows;
  if (stride_operand < in.info->operands) {
    out.stride = static_cast<std::int64_t>(x.value(in.slot_at(stride_operand, 0), 0));
  }
  return out;
}

struct Memory2D {
  Space space;
  std::uint64_t base;
};

Memory2D memory_of(Exec& x, const Inst& in, int operand) {
  const Addresses a = read_addresses(x, in, operand);
  const std::uint64_t at = a.at[0];
  if (in.info->space != Space::generic) return {in.info->space, at};
  const Space space = space_of(at);
  return {space, space == Space::global ? at : at % kWindowBytes};
}

Element element_type(const Inst& in) { return element(*in.info->opcode, 0); }

Flow load(Exec& x, const Inst& in, MmaShape s) {
  const Element type = element_type(in);
  const Layout layout = layout_of(x, in, s, 2);
  const Memory2D m = memory_of(x, in, 1);
  const std::int64_t bytes = std::max(type.bits / 8, 1);
  for_each_element(in.info->count[0], type, layout.rows * layout.cols,
                   [&](unsigned lane, int r, int e, int i) {
                     const std::int64_t bit = layout.offset(i) * type.bits;
                     const std::uint64_t at = m.base + static_cast<std::uint64_t>(bit / 8);
                     Located l;
                     std::uint64_t word = 0;
                     bool defined = true;
                     if (locate(x, lane, m.space, at, bytes, bytes, Purpose::read, l)) {
                       if (l.shadowed) {
                         note_access(x, lane, l.target, at, bytes, Access::read, Strength::weak,
                                     thread_actor(x, lane));
                       }
                       defined = is_initialized(l, 0, bytes);
                       if (l.data != nullptr) {
                         std::memcpy(&word, l.data, static_cast<std::size_t>(bytes));
                         word >>= bit % 8;
                       }
                     }
                     write_element(x, in.slot_at(0, r), lane, type, e, word, defined);
                   });
  return Flow::next;
}

Flow store(Exec& x, const Inst& in, MmaShape s) {
  const Element type = element_type(in);
  const Layout layout = layout_of(x, in, s, 2);
  const Memory2D m = memory_of(x, in, 0);
  const std::int64_t bytes = type.bits / 8;
  x.run->changed();
  for_each_element(
      in.info->count[1], type, layout.rows * layout.cols, [&](unsigned lane, int r, int e, int i) {
        const Slot& slot = in.slot_at(1, r);
        const std::uint64_t at = m.base + static_cast<std::uint64_t>(layout.offset(i) * bytes);
        Located l;
        if (!locate(x, lane, m.space, at, bytes, bytes, Purpose::write, l)) return;
        if (l.shadowed) {
          note_access(x, lane, l.target, at, bytes, Access::write, Strength::weak,
                      thread_actor(x, lane));
        }
        const bool defined = (x.defined(slot) >> lane & 1) != 0;
        if (!defined && m.space == Space::global)
          report_undefined(x, 1U << lane, "the value stored");
        const std::uint64_t word = x.value(slot, lane) >> (e * type.bits);
        std::memcpy(l.data, &word, static_cast<std::size_t>(bytes));
        set_initialized(l, 0, bytes, defined || m.space == Space::global);
      });
  return Flow::next;
}

Flow multiply_fragments(Exec& x, const Inst& in, MmaShape s) {
  const ptx::Opcode& op = *in.info->opcode;
  const Element half{Type::f16, 16};
  const bool four = element(op, 2).type != Type::none;
  Arithmetic how;
  how.d = element(op, 0);
  how.a = four ? element(op, 1) : half;  // ".f32.f16" names d and c only: a and b are f16
  how.b = four ? element(op, 2) : half;
  how.c = element(op, four ? 3 : 1);
  how.saturate = in.info->has<"satfinite">();
  how.bits_xor = in.info->has<"xor">();
  const Tile a = read_fragment(x, in, 1, how.a, s.m, s.k);
  const Tile b = read_fragment(x, in, 2, how.b, s.k, s.n);
  const Tile c = read_fragment(x, in, 3, how.c, s.m, s.n);
  const Tile d = multiply(a, b, c, how);
  x.grid->report.counters.tensor_ops += static_cast<std::uint64_t>(2 * s.m * s.n * s.k);
  for_each_element(in.info->count[0], how.d, s.m * s.n, [&](unsigned lane, int r, int e, int i) {
    const auto at = static_cast<std::size_t>(i);
    write_element(x, in.slot_at(0, r), lane, how.d, e,
                  encode_number(how.d.type, d.value[at], how.saturate), d.defined[at] != 0);
  });
  return Flow::next;
}

}  // namespace

Flow exec_wmma(Exec& x, const Inst& in) {
  const MmaShape s = read_mma_shape(*in.info->opcode);
  if (gather_aligned(x) == Gather::wait) return Flow::stop;
  if (in.info->has<"load">()) return load(x, in, s);
  if (in.info->has<"store">()) return store(x, in, s);
  return multiply_fragments(x, in, s);
}

}  // namespace tilewright::emu::detail
