// SPDX-License-Identifier: Apache-2.0
// cp.async.bulk and cp.reduce.async.bulk without tensors, their groups, st.async and red.async.
#include "emu/bulk.h"

#include "emu/async.h"
#include "emu/atomics.h"
#include "emu/handlers.h"
#include "emu/local.h"
#include "emu/mbarrier.h"

#include <bit>
#include <cstring>

namespace tilewright::emu::detail {

namespace {

const Slot& operand(const Inst& in, int i) {
  return in.slot[in.info->start[static_cast<std::size_t>(i)]];
}

std::uint64_t address_operand(Exec& x, const Inst& in, int i, unsigned lane) {
  const Slot& s = operand(in, i);
  const std::uint64_t at =
      x.value(s, lane) + static_cast<std::uint64_t>(in.info->offset[static_cast<std::size_t>(i)]);
  return s.cls == Class::b32 ? at & 0xffffffff : at;
}

/// The first two spaces that the opcode names: destination, then source.
std::pair<Space, Space> spaces_of(const ptx::Opcode& op) {
  Space found[2] = {Space::global, Space::global};
  int count = 0;
  for (const ptx::Mod mod : op.slots) {
    if (mod.id == 0 || count == 2) continue;
    const std::string_view word = ptx::name(mod);
    if (word == "global") found[count++] = Space::global;
    if (word == "shared::cta") found[count++] = Space::shared;
    if (word == "shared::cluster") found[count++] = Space::shared_cluster;
  }
  return {found[0], found[1]};
}

}  // namespace

bool bulk_range(Exec& x, unsigned lane, Space space, std::uint64_t address, std::int64_t bytes,
                std::int64_t alignment, Purpose purpose, Block** owner) {
  // Pages limit what one lookup covers in global memory.
  std::int64_t done = 0;
  while (done < bytes) {
    Located l;
    const std::uint64_t at = address + static_cast<std::uint64_t>(done);
    if (!locate(x, lane, space, at, bytes - done, alignment, purpose, l)) return false;
    if (l.target.owner != nullptr) {
      *owner = l.target.owner;
      return true;
    }
    done += std::min(bytes - done, kPageBytes);
  }
  return true;
}

void note_bulk(Exec& x, unsigned lane, Space space, std::uint64_t address, std::int64_t bytes,
               Access access, const Actor& actor, std::int64_t element_bytes) {
  std::int64_t done = 0;
  while (done < bytes) {
    const std::uint64_t at = address + static_cast<std::uint64_t>(done);
    std::int64_t piece = bytes - done;
    Located l;
    if (!locate(x, lane, space, at, 1, 0, access == Access::read ? Purpose::read : Purpose::write,
                l)) {
      return;
    }
    if (l.allocation != nullptr) {
      const auto in_page = static_cast<std::int64_t>((at - l.allocation->base) % kPageBytes);
      piece = std::min(piece, kPageBytes - in_page);
    }
    if (l.shadowed && access == Access::atomic) {
      note_vector(x, lane, l.target, at, {piece / element_bytes, element_bytes}, access,
                  Strength::gpu, actor);
    } else if (l.shadowed) {
      const std::int64_t lines = note_lines(x, lane, l.target, piece, access, actor);
      if (lines != 0) {
        piece = lines;
      } else {
        note_access(x, lane, l.target, at, piece, access, Strength::weak, actor);
      }
    }
    if (access == Access::read && !is_initialized(l, 0, piece)) {
      report_uninitialized(x, lane, l.target, at, piece);
    }
    done += piece;
  }
}

void read_bytes(Run& run, const Block* owner, std::uint64_t address, std::span<std::byte> out) {
  if (owner != nullptr) {
    std::memcpy(out.data(), owner->shared.data() + ((address & 0xffffff) - kSharedBase),
                out.size());
    return;
  }
  const Allocation* a = run.memory->at_or_below(address);
  if (a != nullptr && !a->freed) run.memory->read(*a, address, out);
}

void write_bytes(Run& run, Block* owner, std::uint64_t address, std::span<const std::byte> data) {
  run.changed();
  if (owner == nullptr) {
    Allocation* a = run.memory->at_or_below(address);
    if (a != nullptr && !a->freed) run.memory->write(*a, address, data);
    return;
  }
  const std::uint64_t offset = (address & 0xffffff) - kSharedBase;
  std::memcpy(owner->shared.data() + offset, data.data(), data.size());
  Located l;
  l.data = owner->shared.data();
  l.init = owner->shared_init.data();
  l.init_bit = static_cast<std::int64_t>(offset);
  set_initialized(l, 0, static_cast<std::int64_t>(data.size()), true);
}

namespace {

struct BulkReduce {
  AtomOp op = AtomOp::none;
  Type type = Type::none;
};

void reduce_bytes(Run& run, Block* owner, std::uint64_t address, std::span<std::byte> data,
                  BulkReduce r) {
  if (r.op == AtomOp::none) return;
  std::vector<std::byte> old(data.size());
  read_bytes(run, owner, address, old);
  const auto width = static_cast<std::size_t>(bytes(r.type));
  for (std::size_t i = 0; i + width <= data.size(); i += width) {
    std::uint64_t a = 0, b = 0;
    std::memcpy(&a, old.data() + i, width);
    std::memcpy(&b, data.data() + i, width);
    const std::uint64_t c = combine(r.op, r.type, a, b, false);
    std::memcpy(data.data() + i, &c, width);
  }
}

struct BulkCopy {
  Space to_space = Space::global, from_space = Space::global;
  std::uint64_t to = 0, from = 0, mbarrier = 0;
  std::int64_t bytes = 0;
  bool by_mbarrier = false;
  std::uint32_t multicast = 0;  ///< ranks; 0: none
  BulkReduce reduce;
};

void issue_one(Exec& x, unsigned lane, const BulkCopy& c) {
  Block *to_owner = nullptr, *from_owner = nullptr, *bar_owner = nullptr;
  if (!bulk_range(x, lane, c.to_space, c.to, c.bytes, 16, Purpose::write, &to_owner)) return;
  if (!bulk_range(x, lane, c.from_space, c.from, c.bytes, 16, Purpose::read, &from_owner)) return;
  if (c.by_mbarrier) {
    if (find_mbarrier(x, lane, Space::shared_cluster, c.mbarrier) == nullptr) return;
    bar_owner = owner_of(x, c.mbarrier);
  }
  Block& block = *x.block;
  const std::uint32_t thread = x.warp->thread(lane);
  const BulkAgent reader = take_agent(block), writer = take_agent(block);
  const Access write = c.reduce.op == AtomOp::none ? Access::write : Access::atomic;
  note_bulk(x, lane, c.from_space, c.from, c.bytes, Access::read,
            bulk_actor(x, lane, reader, "bulk copy"));
  note_bulk(x, lane, c.to_space, c.to, c.bytes, write, bulk_actor(x, lane, writer, "bulk copy"),
            bits(c.reduce.type) / 8);
  SnapshotRef done = join(completion(block, reader), completion(block, writer));
  // Between blocks of a cluster partners hand buffers to and fro, as with st.async.
  if (from_owner != nullptr && c.by_mbarrier) done = join(done, release_snapshot(*x.warp, lane));
  if (from_owner != nullptr) {
    from_owner->issued.push_back({reader.agent, reader.epoch, block.number, thread, x.pc, true});
  }
  if (to_owner != nullptr) {
    to_owner->issued.push_back({writer.agent, writer.epoch, block.number, thread, x.pc, false});
  }
  if (!c.by_mbarrier) {
    block.bulk_groups.push_back({thread, x.warp->bulk_group[lane], reader, writer});
  }
  x.grid->report.counters.async_bytes += static_cast<std::uint64_t>(c.bytes);
  Run* run = x.run;
  auto deliver = [run, c, to_owner, from_owner, bar_owner, done] {
    std::vector<std::byte> data(static_cast<std::size_t>(c.bytes));
    read_bytes(*run, from_owner, c.from, data);
    reduce_bytes(*run, to_owner, c.to, data, c.reduce);
    write_bytes(*run, to_owner, c.to, data);
    if (bar_owner == nullptr) return;
    auto it = bar_owner->mbarriers.find(static_cast<std::uint32_t>(c.mbarrier & 0xffffff));
    if (it != bar_owner->mbarriers.end()) complete_tx(*run, it->second, c.bytes, done);
  };
  enqueue(x, {x.grid, &block, to_owner != &block ? to_owner : from_owner, thread,
              c.by_mbarrier ? 0 : x.warp->bulk_group[lane], std::move(deliver)});
}

void issue(Exec& x, unsigned lane, const BulkCopy& c) {
  if (c.bytes % 16 != 0 || c.bytes < 0) {
    report(x, {.kind = Kind::misaligned,
               .lane = lane,
               .message = "copies " + std::to_string(c.bytes) + " bytes; use a multiple of 16",
               .range = {},
               .other = {}});
    return;
  }
  if (c.multicast == 0) {
    issue_one(x, lane, c);
    return;
  }
  for (std::uint32_t left = c.multicast; left != 0; left &= left - 1) {
    const auto rank = static_cast<std::uint64_t>(std::countr_zero(left));
    BulkCopy one = c;
    one.to = (c.to & 0xffffff) | rank << kRankShift;
    one.mbarrier = (c.mbarrier & 0xffffff) | rank << kRankShift;
    issue_one(x, lane, one);
  }
}

}  // namespace

Flow exec_bulk_copy(Exec& x, const Inst& in) {
  if (in.info->has<"prefetch">()) return Flow::next;
  const auto [to_space, from_space] = spaces_of(*in.info->opcode);
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    BulkCopy c;
    c.to_space = to_space;
    c.from_space = from_space;
    c.to = address_operand(x, in, 0, lane);
    c.from = address_operand(x, in, 1, lane);
    c.bytes = static_cast<std::uint32_t>(x.value(operand(in, 2), lane));
    c.by_mbarrier = in.info->has<"mbarrier::complete_tx::bytes">();
    if (c.by_mbarrier) c.mbarrier = address_operand(x, in, 3, lane);
    if (in.info->has<"multicast::cluster">()) {
      c.multicast = static_cast<std::uint32_t>(x.value(operand(in, 4), lane)) & 0xffff;
    }
    c.reduce = {in.info->atom, in.info->type};
    issue(x, lane, c);
  }
  return Flow::next;
}

/// commit_group and wait_group[.read] of bulk copies.
Flow exec_bulk_group(Exec& x, const Inst& in) {
  Warp& w = *x.warp;
  const bool commit = in.info->has<"commit_group">();
  const bool read = in.info->has<"read">();
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    if (commit) {
      ++w.bulk_group[lane];
      continue;
    }
    const std::uint64_t keep = x.value(operand(in, 0), lane);
    const std::uint64_t committed = w.bulk_group[lane] - 1;
    if (committed <= keep) continue;
    const std::uint64_t last = committed - keep;
    const std::uint32_t thread = w.thread(lane);
    deliver_groups(*x.run, *x.block, thread, last);
    for (const BulkGroupOp& op : x.block->bulk_groups) {
      if (op.thread != thread || op.group > last) continue;
      acquire_snapshot(w, lane, completion(*x.block, op.reader));
      if (!read) acquire_snapshot(w, lane, completion(*x.block, op.writer));
    }
    if (!read) {
      std::erase_if(x.block->bulk_groups,
                    [&](const BulkGroupOp& op) { return op.thread == thread && op.group <= last; });
    }
  }
  return Flow::next;
}

/// st.async and red.async: remote stores that complete on the remote block's mbarrier.
Flow exec_store_async(Exec& x, const Inst& in) {
  const OpInfo& info = *in.info;
  const bool reduces = info.opcode->row().opcode == "red";
  const std::int64_t size = info.bytes * info.vec;
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t to = address_operand(x, in, 0, lane);
    const std::uint64_t bar = address_operand(x, in, 2, lane);
    Block* owner = nullptr;
    if (!bulk_range(x, lane, Space::shared_cluster, to, size, size, Purpose::write, &owner) ||
        find_mbarrier(x, lane, Space::shared_cluster, bar) == nullptr) {
      continue;
    }
    std::vector<std::byte> data(static_cast<std::size_t>(size));
    for (int i = 0; i < info.vec; ++i) {
      const std::uint64_t v = x.value(in.slot[info.start[1] + static_cast<unsigned>(i)], lane);
      std::memcpy(data.data() + i * info.bytes, &v, static_cast<std::size_t>(info.bytes));
    }
    const BulkAgent agent = take_agent(*x.block);
    Actor actor = bulk_actor(x, lane, agent, reduces ? "red.async" : "st.async");
    actor.async_proxy = false;  // the manual puts bulk copies and wgmma there, and no others
    note_bulk(x, lane, Space::shared_cluster, to, size, reduces ? Access::atomic : Access::write,
              actor, info.bytes);
    const std::uint32_t thread = x.warp->thread(lane);
    owner->issued.push_back({agent.agent, agent.epoch, x.block->number, thread, x.pc, false});
    // Who waits for it knows what its thread knew: partners hand a buffer to and fro so.
    const SnapshotRef done = join(completion(*x.block, agent), release_snapshot(*x.warp, lane));
    Block* bar_owner = owner_of(x, bar);
    Run* run = x.run;
    const BulkReduce r{reduces ? info.atom : AtomOp::none, info.type};
    auto deliver = [run, owner, to, data, r, bar_owner, bar, done]() mutable {
      reduce_bytes(*run, owner, to, data, r);
      write_bytes(*run, owner, to, data);
      auto it = bar_owner->mbarriers.find(static_cast<std::uint32_t>(bar & 0xffffff));
      if (it == bar_owner->mbarriers.end()) return;
      complete_tx(*run, it->second, static_cast<std::int64_t>(data.size()), done);
    };
    enqueue(x, {x.grid, x.block, owner, thread, 0, std::move(deliver)});
  }
  return Flow::next;
}

}  // namespace tilewright::emu::detail
