// SPDX-License-Identifier: Apache-2.0
// cp.async: copies of 4, 8 or 16 bytes a lane, complete at a wait or through an mbarrier.
#include "emu/access.h"
#include "emu/async.h"
#include "emu/handlers.h"
#include "emu/mbarrier.h"
#include "emu/row.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tilewright::emu::detail {

namespace {

const Slot& operand(const Inst& in, int i) {
  return in.slot[in.info->start[static_cast<std::size_t>(i)]];
}

struct Piece {
  std::uint64_t from = 0;
  std::uint32_t to = 0, bytes = 0;  ///< in shared memory
  std::uint32_t source_bytes = 0;   ///< the rest is zeros
};

void move(Run& run, Block& block, const Piece& p) {
  const std::uint32_t offset = (p.to & 0xffffff) - kSharedBase;
  const std::span to(block.shared.data() + offset, p.bytes);
  Allocation* a = p.source_bytes != 0 ? run.memory->at_or_below(p.from) : nullptr;
  const bool read = a != nullptr && !a->freed;
  if (read) run.memory->read(*a, p.from, to.first(p.source_bytes));
  const std::size_t filled = read ? p.source_bytes : 0;
  std::memset(to.data() + filled, 0, p.bytes - filled);
  Located l;
  l.data = block.shared.data();
  l.init = block.shared_init.data();
  l.init_bit = offset;
  set_initialized(l, 0, p.bytes, true);
}

/// Moves the data of the lanes of `mask`. Bounds were checked when the copy was issued.
void move(Run& run, Warp& w, CpAsync& op, std::uint32_t mask) {
  std::uint32_t left = op.pending & mask;
  if (op.row && left == ~std::uint32_t{0}) {
    move(run, *w.block, {op.from[0], op.to[0], 32 * op.bytes, 32 * op.bytes});
    left = 0;
  }
  for (; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint32_t at = op.row ? lane * op.bytes : 0, i = op.row ? 0 : lane;
    move(run, *w.block, {op.from[i] + at, op.to[i] + at, op.bytes, op.source_bytes[i]});
  }
  op.pending &= ~mask;
  run.changed();
}

/// The lanes whose copies of groups up to `last[lane]` are to be complete.
void move_groups(Run& run, Warp& w, std::uint32_t mask, const std::array<std::uint32_t, 32>& last) {
  for (CpAsync& op : w.cp_async) {
    std::uint32_t lanes = 0;
    for_lanes(op.pending & mask, [&](unsigned lane) {
      lanes |= static_cast<std::uint32_t>(op.group[lane] <= last[lane]) << lane;
    });
    if (lanes != 0) move(run, w, op, lanes);
  }
  std::erase_if(w.cp_async, [](const CpAsync& op) { return op.pending == 0; });
}

bool deliver_now(Run& run) {
  return run.options.delivery == Delivery::eager ||
         (run.options.delivery == Delivery::random && run.decisions.below(2) == 0);
}

/// The number of source bytes, from the optional operands behind the size.
std::uint32_t source_bytes(Exec& x, const Inst& in, unsigned lane, std::uint32_t size) {
  if (in.info->operands < 4) return size;
  const Slot& s = operand(in, 3);
  if (s.cls == Class::pred) return x.value(s, lane) != 0 ? 0 : size;
  if (s.cls == Class::b64) return size;  // a cache policy
  const auto count = static_cast<std::uint32_t>(x.value(s, lane));
  if (count > size) {
    report(x, {.kind = Kind::out_of_bounds,
               .lane = lane,
               .message =
                   "copies " + std::to_string(count) + " source bytes into " + std::to_string(size),
               .range = {},
               .other = {}});
  }
  return std::min(count, size);
}

void note_copy(Exec& x, unsigned lane, std::uint64_t from, std::uint32_t count, const Located& to,
               std::uint64_t to_address, std::uint32_t size) {
  if (count != 0) {
    Located source;
    if (!locate(x, lane, Space::global, from, count, 0, Purpose::read, source)) return;
    if (source.shadowed) {
      note_access(x, lane, source.target, from, count, Access::read, Strength::weak,
                  thread_actor(x, lane));
    }
    if (!is_initialized(source, 0, count)) {
      report_uninitialized(x, lane, source.target, from, count);
    }
  }
  if (!to.shadowed) return;
  note_access(x, lane, to.target, to_address, size, Access::write, Strength::weak,
              copy_actor(x, lane));
}

}  // namespace

namespace {

/// Consecutive elements both here and there, whole ones, and nothing amiss.
bool issue_row(Exec& x, const Inst& in, std::uint32_t size, CpAsync& op) {
  const bool whole = in.info->operands < 4 || operand(in, 3).cls == Class::b64;  // a cache policy
  if (!whole || (size != 4 && size != 8 && size != 16)) return false;
  const auto to = find_row(x, in, 0, Space::shared, size);
  const auto from = find_row(x, in, 1, Space::global, size);
  if (!to || !from) return false;
  const std::int64_t bytes = std::int64_t{32} * size;
  Located target, source;
  if (!locate_quietly(x, to->space, to->address, bytes, Purpose::write, target)) return false;
  if (!locate_quietly(x, from->space, from->address, bytes, Purpose::read, source)) return false;
  if (!is_initialized(source, 0, bytes)) return false;
  const unsigned words = size / 4;
  const RowAccess read{words, Access::read, Strength::weak, false};
  const RowAccess write{words, Access::write, Strength::weak, true};
  if (source.shadowed && !note_row(x, source.target, read)) return false;
  if (target.shadowed && !note_row(x, target.target, write)) return false;
  op.row = true;
  op.pending = ~std::uint32_t{0};
  op.to[0] = static_cast<std::uint32_t>(to->address);
  op.from[0] = from->address;
  op.source_bytes[0] = size;
  op.group = x.warp->cp_epoch;
  x.warp->cp_used = x.warp->cp_epoch;
  x.grid->report.counters.async_bytes += static_cast<std::uint64_t>(bytes);
  return true;
}

void issue_lanes(Exec& x, const Inst& in, std::uint32_t size, CpAsync& op) {
  const Addresses to = read_addresses(x, in, 0);
  const Addresses from = read_addresses(x, in, 1);
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint32_t count = source_bytes(x, in, lane, size);
    Located target, source;
    if (!locate(x, lane, Space::shared, to.at[lane], size, size, Purpose::write, target)) continue;
    if (count != 0 &&
        !locate(x, lane, Space::global, from.at[lane], count, size, Purpose::read, source)) {
      continue;
    }
    note_copy(x, lane, from.at[lane], count, target, to.at[lane], size);
    op.pending |= 1U << lane;
    op.to[lane] = static_cast<std::uint32_t>(to.at[lane]);
    op.from[lane] = from.at[lane];
    op.source_bytes[lane] = count;
    op.group[lane] = x.warp->cp_epoch[lane];
    x.warp->cp_used[lane] = x.warp->cp_epoch[lane];
    x.grid->report.counters.async_bytes += count;
  }
}

}  // namespace

Flow exec_cp_async(Exec& x, const Inst& in) {
  const auto size = static_cast<std::uint32_t>(
      x.value(operand(in, 2), static_cast<unsigned>(std::countr_zero(x.mask))));
  ++x.block->cp_users;
  x.warp->cp_pc = x.pc;
  CpAsync& op = x.warp->cp_async.emplace_back();
  op.pc = x.pc;
  op.bytes = size;
  if (!issue_row(x, in, size, op)) issue_lanes(x, in, size, op);
  if (deliver_now(*x.run)) move(*x.run, *x.warp, op, ~std::uint32_t{0});
  if (op.pending == 0) x.warp->cp_async.pop_back();
  return Flow::next;
}

/// commit_group closes a group; wait_group N and wait_all complete groups for their own thread.
Flow exec_cp_async_group(Exec& x, const Inst& in) {
  Warp& w = *x.warp;
  const bool commit = in.info->has<"commit_group">();
  const bool all = in.info->has<"wait_all">();
  if (commit) {
    for_lanes(x.mask, [&](unsigned lane) { ++w.cp_epoch[lane]; });
    return Flow::next;
  }
  const std::uint32_t keep = all ? 0 : static_cast<std::uint32_t>(x.value(operand(in, 0), 0));
  std::array<std::uint32_t, 32> last{};
  // wait_all also completes what is not committed; group numbers begin at 1.
  const std::uint32_t close = all ? 1 : 0;
  for_lanes(x.mask, [&](unsigned lane) {
    w.cp_epoch[lane] += close;
    last[lane] = std::max(w.cp_epoch[lane] - 1, keep) - keep;
  });
  move_groups(*x.run, w, x.mask, last);
  for_lanes(x.mask, [&](unsigned lane) {
    w.clocks.copied[lane] = std::max(w.clocks.copied[lane], last[lane]);
  });
  return Flow::next;
}

/// An arrival that takes place once the thread's earlier copies are complete.
Flow exec_cp_async_mbarrier(Exec& x, const Inst& in) {
  const bool noinc = in.info->has<"noinc">();
  const Addresses a = read_addresses(x, in, 0);
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t at =
        in.info->space == Space::generic ? a.at[lane] % kWindowBytes : a.at[lane];
    Mbarrier* m = find_mbarrier(x, lane, Space::shared, at);
    if (m == nullptr) continue;
    if (!noinc) ++m->pending;
    Warp* w = x.warp;
    Run* run = x.run;
    const auto key = static_cast<std::uint32_t>(at & 0xffffff);
    const std::uint32_t epoch = w->cp_epoch[lane];
    const std::uint32_t agent = x.block->cp_agent(w->thread(lane));
    auto deliver = [run, w, lane, key, epoch, agent] {
      std::array<std::uint32_t, 32> last{};
      last[lane] = epoch;
      move_groups(*run, *w, 1U << lane, last);
      auto it = w->block->mbarriers.find(key);
      if (it == w->block->mbarriers.end() || it->second.pending == 0) return;
      auto released = std::make_shared<Snapshot>();
      released->push_back({w->block->number, raised(nullptr, agent, epoch), nullptr});
      it->second.arriving = join(it->second.arriving, released);
      --it->second.pending;
      settle(*run, it->second);
    };
    // The copies' group is closed for the race check: later ones are not covered by this arrival.
    enqueue(x, {x.grid, x.block, x.block, w->thread(lane), 0, std::move(deliver)});
  }
  return Flow::next;
}

}  // namespace tilewright::emu::detail
