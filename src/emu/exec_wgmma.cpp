// SPDX-License-Identifier: Apache-2.0
// wgmma.mma_async, fence, commit_group and wait_group.
#include "emu/access.h"
#include "emu/async.h"
#include "emu/descriptor.h"
#include "emu/gather.h"
#include "emu/handlers.h"
#include "emu/number.h"
#include "emu/sparse.h"
#include "emu/wgmma.h"
#include "ptx/semantics/matrix.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tilewright::emu::detail {

namespace {

namespace sem = ptx::semantics;

struct WgmmaShape {
  int n = 0, k = 0;
  Type d = Type::none;
  Element a, b;
  bool sparse = false;
  int width() const { return a.bits; }
  int a_columns() const { return sparse ? k / 2 : k; }  ///< that are stored
};

WgmmaShape read_wgmma_shape(const ptx::Opcode& op) {
  WgmmaShape s;
  for (const ptx::Mod mod : op.slots) {
    const std::string_view word = mod.id == 0 ? std::string_view{} : ptx::name(mod);
    if (!word.starts_with("m64n")) continue;
    int* field = &s.n;
    for (const char ch : word.substr(4)) {
      if (ch == 'k') {
        field = &s.k;
      } else {
        *field = *field * 10 + (ch - '0');
      }
    }
  }
  s.d = op.type(0);
  s.a = element(op, 1);
  s.b = element(op, 2);
  s.sparse = op.has(ptx::mod("sp"));
  return s;
}

std::int64_t number_operand(Exec& x, const Inst& in, int operand, std::int64_t otherwise) {
  if (operand >= in.info->operands) return otherwise;
  return static_cast<std::int32_t>(x.value(in.slot_at(operand, 0), 0));
}

/// Operands behind b and, if sparse, its metadata and selector: scale-d, then the modifiers of a
/// and b.
int modifier(const WgmmaShape& s, int i) { return (s.sparse ? 5 : 3) + i; }

/// Element matrices as floats (or integers), row-major.
struct Matrices {
  std::vector<float> a, b, c;
  std::vector<std::int32_t> ia, ib, ic;
};

bool integer(const WgmmaShape& s) { return s.d == Type::s32; }

/// The element that begins at a bit of the byte at an address of shared memory.
double shared_element(const Block& block, std::uint32_t address, std::uint32_t bit, Element e) {
  std::uint64_t bits = 0;
  const std::size_t size = block.shared.size();
  const auto bytes = static_cast<std::size_t>(std::max(e.bits / 8, 1));
  const std::size_t offset = address - std::size_t{kSharedBase};  // huge below the window's start
  if (offset < size && size - offset >= bytes) {
    std::memcpy(&bits, block.shared.data() + offset, bytes);
  }
  return decode_number(e, bits >> bit);
}

double register_element(Exec& x, const PendingWgmma& op, const WgmmaShape& s, int r, int k) {
  const int pack = 32 / s.width();
  const int half = k / (4 * pack), t = k / pack % 4, e = k % pack;
  const auto lane = static_cast<unsigned>(r % 8 * 4 + t);
  const std::uint64_t word = x.value(op.inst->slot_at(1, r / 8 + 2 * half), lane);
  return decode_number(s.a,
                       s.width() == 32 ? word : word >> (e * s.width()) & ((1U << s.width()) - 1));
}

void read_a(Exec& x, const PendingWgmma& op, const WgmmaShape& s, Matrices& m) {
  const Inst& in = *op.inst;
  const auto scale = static_cast<double>(number_operand(x, in, modifier(s, 1), 1));
  const bool transposed = number_operand(x, in, modifier(s, 3), 0) != 0;
  const bool registers = in.info->count[1] == 4;
  const MatrixDescriptor desc(op.a);
  const auto row0 = static_cast<std::uint32_t>(x.warp->id % 4 * 16);
  const SparseOperand sparse{s.a, s.k};
  const auto count = static_cast<std::size_t>(16 * s.k);
  m.a.assign(count, 0);
  m.ia.assign(count, 0);
  for (int r = 0; r < 16; ++r) {
    for (int k = 0; k < s.a_columns(); ++k) {
      const auto bit = static_cast<std::uint32_t>(k * s.width());
      const std::uint32_t row = row0 + static_cast<std::uint32_t>(r);
      const std::uint32_t at = transposed
                                   ? desc.mn_major(static_cast<std::uint32_t>(k),
                                                   row * static_cast<std::uint32_t>(s.width()) / 8)
                                   : desc.k_major(row, bit / 8);
      const double v = scale * (registers ? register_element(x, op, s, r, k)
                                          : shared_element(*x.block, at, bit % 8, s.a));
      const int column =
          s.sparse ? sparse_column(sparse, op.metadata[static_cast<std::size_t>(r)], k) : k;
      const auto to = static_cast<std::size_t>(r * s.k + column);
      m.a[to] = static_cast<float>(v);
      if (integer(s)) m.ia[to] = static_cast<std::int32_t>(v);
    }
  }
}

void read_b(Exec& x, const PendingWgmma& op, const WgmmaShape& s, Matrices& m) {
  const Inst& in = *op.inst;
  const auto scale = static_cast<double>(number_operand(x, in, modifier(s, 2), 1));
  const bool a_in_registers = in.info->count[1] == 4;
  const bool transposed = number_operand(x, in, modifier(s, a_in_registers ? 3 : 4), 0) != 0;
  const MatrixDescriptor desc(op.b);
  const auto width = static_cast<std::uint32_t>(s.width());
  for (std::uint32_t k = 0; k < static_cast<std::uint32_t>(s.k); ++k) {
    for (std::uint32_t n = 0; n < static_cast<std::uint32_t>(s.n); ++n) {
      const std::uint32_t at =
          transposed ? desc.mn_major(k, n * width / 8) : desc.k_major(n, k * width / 8);
      const double v = scale * shared_element(*x.block, at, k * width % 8, s.b);
      m.b.push_back(static_cast<float>(v));
      m.ib.push_back(integer(s) ? static_cast<std::int32_t>(v) : 0);
    }
  }
}

/// Calls `each(slot, part of the register, row of 16, column)` for the lane's accumulators.
template <class Each>
void for_each_accumulator(const Inst& in, const WgmmaShape& s, unsigned lane, Each each) {
  const int pack = s.d == Type::f16 ? 2 : 1;
  const int g = static_cast<int>(lane / 4), t = static_cast<int>(lane % 4);
  for (int j = 0; j < s.n / 2; ++j) {
    each(in.slot_at(0, j / pack), j % pack, g + 8 * (j / 2 % 2), 8 * (j / 4) + 2 * t + j % 2);
  }
}

void compute(Exec& x, const PendingWgmma& op) {
  const Inst& in = *op.inst;
  const WgmmaShape s = read_wgmma_shape(*in.info->opcode);
  Exec view = x;
  view.frame = x.warp->stack.data() + op.frame_base;
  Matrices m;
  read_a(view, op, s, m);
  read_b(view, op, s, m);
  const auto count = static_cast<std::size_t>(16 * s.n);
  m.c.assign(count, 0);
  m.ic.assign(count, 0);
  auto at = [&](int r, int c) { return static_cast<std::size_t>(r * s.n + c); };
  for (unsigned lane = 0; lane < 32 && op.accumulate; ++lane) {
    for_each_accumulator(in, s, lane, [&](const Slot& slot, int e, int r, int c) {
      const std::uint64_t word = view.value(slot, lane);
      const std::uint64_t bits = s.d == Type::f16 ? word >> (16 * e) & 0xffff : word;
      const double v = decode_number(s.d, bits);
      m.c[at(r, c)] = static_cast<float>(v);
      if (integer(s)) m.ic[at(r, c)] = static_cast<std::int32_t>(v);
    });
  }
  const sem::MatrixExtent extent{16, s.n, s.k};
  const bool saturate = in.info->has<"satfinite">();
  if (integer(s)) {
    sem::multiply_add(extent, m.ia.data(), m.ib.data(), m.ic.data(), m.ic.data(),
                      saturate ? sem::IntegerOverflow::saturate : sem::IntegerOverflow::wrap);
  } else {
    sem::multiply_add(extent, m.a.data(), m.b.data(), m.c.data(), m.c.data());
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    for_each_accumulator(in, s, lane, [&](const Slot& slot, int e, int r, int c) {
      std::uint64_t word = integer(s)
                               ? static_cast<std::uint32_t>(m.ic[at(r, c)])
                               : encode_number(s.d, static_cast<double>(m.c[at(r, c)]), false);
      if (s.d == Type::f16 && e == 1) word = (view.value(slot, lane) & 0xffff) | word << 16;
      view.set(slot, lane, word);
    });
  }
}

void deliver_wgmma(Exec& x, PendingWgmma& op) {
  if (op.delivered) return;
  op.delivered = true;
  compute(x, op);
}

/// Shared memory that the operands cover, in rows of 16 bytes, is read by the asynchronous proxy.
void note_operands(Exec& x, const PendingWgmma& op, const WgmmaShape& s) {
  if (!race_checked(x) && !x.checks(Kind::uninitialized_read)) return;
  const Inst& in = *op.inst;
  const Actor actor = bulk_actor(x, 0, op.agent, "wgmma");
  auto note = [&](std::uint32_t address) {
    const std::uint64_t at = address | std::uint64_t{x.block->rank} << kRankShift;
    Located l;
    if (!locate(x, 0, Space::shared, at, 16, 16, Purpose::read, l)) return false;
    if (l.shadowed) note_access(x, 0, l.target, at, 16, Access::read, Strength::weak, actor);
    if (!is_initialized(l, 0, 16)) report_uninitialized(x, 0, l.target, at, 16);
    return true;
  };
  auto operand = [&](std::uint64_t bits, std::uint32_t first, std::uint32_t rows,
                     std::uint32_t columns, bool transposed) {
    const MatrixDescriptor desc(bits);
    const auto bytes = static_cast<std::uint32_t>(s.width() / 8);
    const std::uint32_t k_bytes = columns * static_cast<std::uint32_t>(s.width()) / 8;
    if (transposed) {
      for (std::uint32_t k = 0; k < columns; ++k) {
        for (std::uint32_t b = first * bytes; b < (first + rows) * bytes; b += 16) {
          if (!note(desc.mn_major(k, b))) return;
        }
      }
      return;
    }
    for (std::uint32_t r = first; r < first + rows; ++r) {
      for (std::uint32_t b = 0; b < k_bytes; b += 16) {
        if (!note(desc.k_major(r, b))) return;
      }
    }
  };
  const bool a_in_registers = in.info->count[1] == 4;
  if (!a_in_registers) {
    operand(op.a, x.warp->id % 4 * 16, 16, static_cast<std::uint32_t>(s.a_columns()),
            number_operand(x, in, modifier(s, 3), 0) != 0);
  }
  operand(op.b, 0, static_cast<std::uint32_t>(s.n), static_cast<std::uint32_t>(s.k),
          number_operand(x, in, modifier(s, a_in_registers ? 3 : 4), 0) != 0);
}

void report_missing_fence(Exec& x) {
  if (!x.checks(Kind::proxy_fence)) return;
  report(x, {.kind = Kind::proxy_fence,
             .lane = 0,
             .message = "uses registers that were written after the last wgmma.fence; put "
                        "wgmma.fence.sync.aligned before the first wgmma that uses them",
             .range = {},
             .other = {}});
}

std::size_t line_of(const Slot& s) { return s.value / 128; }

bool test(const std::vector<bool>& set, std::size_t i) { return i < set.size() && set[i]; }
void mark(std::vector<bool>& set, std::size_t i) {
  if (i >= set.size()) set.resize(i + 64);
  set[i] = true;
}

void rebuild_in_flight(Warp& w) {
  w.wgmma_results.clear();
  w.wgmma_sources.clear();
  for (const PendingWgmma& op : w.wgmma) {
    const Inst& in = *op.inst;
    for (int i = 0; i < in.info->count[0]; ++i)
      mark(w.wgmma_results, line_of(in.slot_at(0, i)));
    if (in.info->count[1] != 4) continue;
    for (int i = 0; i < 4; ++i)
      mark(w.wgmma_sources, line_of(in.slot_at(1, i)));
  }
}

}  // namespace

Flow exec_wgmma(Exec& x, const Inst& in) {
  const WgmmaShape s = read_wgmma_shape(*in.info->opcode);
  if (gather_aligned(x) == Gather::wait) return Flow::stop;
  Warp& w = *x.warp;
  PendingWgmma op;
  op.inst = &in;
  op.pc = x.pc;
  op.frame_base = w.frames[x.split->frame].base;
  op.group = w.wgmma_group;
  op.accumulate = x.value(in.slot_at(modifier(s, 0), 0), 0) != 0;
  if (in.info->count[1] == 1) op.a = x.value(in.slot_at(1, 0), 0);
  op.b = x.value(in.slot_at(2, 0), 0);
  op.agent = take_agent(*x.block);
  bool unfenced = false;
  for (int i = 0; i < in.info->count[0]; ++i) {
    unfenced |= test(w.written, line_of(in.slot_at(0, i))) && op.accumulate;
  }
  for (int i = 0; in.info->count[1] == 4 && i < 4; ++i) {
    unfenced |= test(w.written, line_of(in.slot_at(1, i)));
  }
  if (unfenced) report_missing_fence(x);
  if (s.sparse) {
    const auto selector = static_cast<int>(number_operand(x, in, 4, 0));
    const SparseOperand sparse{s.a, s.k, selector};
    op.metadata = sparse_rows(x, in.slot_at(3, 0), sparse);
    check_sparse_rows(x, op.metadata, sparse);
  }
  note_operands(x, op, s);
  x.block->issued.push_back(
      {op.agent.agent, op.agent.epoch, x.block->number, w.thread(0), x.pc, true});
  x.grid->report.counters.tensor_ops += static_cast<std::uint64_t>(2 * 16 * s.n * s.k);
  const bool now = x.run->options.delivery == Delivery::eager ||
                   (x.run->options.delivery == Delivery::random && x.run->decisions.below(2) == 0);
  if (now) {
    for (PendingWgmma& earlier : w.wgmma)
      deliver_wgmma(x, earlier);
    deliver_wgmma(x, op);
  }
  for (int i = 0; i < in.info->count[0]; ++i)
    x.defined(in.slot_at(0, i)) = ~std::uint32_t{0};
  w.wgmma.push_back(op);
  rebuild_in_flight(w);
  return Flow::next;
}

Flow exec_wgmma_sync(Exec& x, const Inst& in) {
  if (gather_aligned(x) == Gather::wait) return Flow::stop;
  Warp& w = *x.warp;
  if (in.info->has<"fence">()) {
    w.written.clear();
    return Flow::next;
  }
  if (in.info->has<"commit_group">()) {
    ++w.wgmma_group;
    return Flow::next;
  }
  const auto keep = static_cast<std::uint64_t>(number_operand(x, in, 0, 0));
  const std::uint64_t committed = w.wgmma_group - 1;
  const std::uint64_t last = committed > keep ? committed - keep : 0;
  SnapshotRef done;
  for (PendingWgmma& pending : w.wgmma) {
    if (pending.group > last) continue;
    deliver_wgmma(x, pending);
    done = join(done, completion(*x.block, pending.agent));
  }
  std::erase_if(w.wgmma, [&](const PendingWgmma& p) { return p.group <= last; });
  rebuild_in_flight(w);
  acquire_lanes(w, x.mask, done);
  return Flow::next;
}

void check_wgmma_registers(Exec& x, const Inst& in) {
  Warp& w = *x.warp;
  const bool wgmma = in.run == exec_wgmma;
  const unsigned results =
      in.info == nullptr ? in.dsts : (in.info->operands > 0 ? in.info->count[0] : 0U);
  for (unsigned i = 0; i < in.slots; ++i) {
    const Slot& s = in.slot[i];
    if (!s.in_frame || s.cls == Class::pred || s.cls == Class::sink) continue;
    const std::size_t line = line_of(s);
    const bool writes = i < results;
    // Accumulators of the same instruction shape may follow each other without a wait.
    const bool chained = wgmma && writes;
    const bool taken = test(w.wgmma_results, line) || (writes && test(w.wgmma_sources, line));
    if (taken && !chained && x.checks(Kind::async_in_flight)) {
      report(x, {.kind = Kind::async_in_flight,
                 .lane = 0,
                 .message = std::string(writes ? "writes" : "reads") +
                            " a register of a wgmma that no wgmma.wait_group has waited for",
                 .range = {},
                 .other = make_place(*x.grid, w.wgmma.front().pc, x.block->linear, w.thread(0))});
    }
    if (writes && !wgmma) mark(w.written, line);
  }
}

}  // namespace tilewright::emu::detail
