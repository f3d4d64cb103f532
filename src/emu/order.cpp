// SPDX-License-Identifier: Apache-2.0
// Release and acquire on memory words, and fences.
#include "emu/order.h"

#include "emu/access.h"
#include "emu/handlers.h"
#include "emu/mbarrier.h"

#include <algorithm>
#include <bit>

namespace tilewright::emu::detail {

namespace {

bool acquires(Order o) { return o == Order::acquire || o == Order::acq_rel || o == Order::sc; }
bool releases(Order o) { return o == Order::release || o == Order::acq_rel || o == Order::sc; }

std::uint8_t scope_number(const OpInfo& info) {
  const Scope s = info.scope == Scope::none ? Scope::gpu : info.scope;
  return static_cast<std::uint8_t>(s);
}

/// Do the scope of a release and of an acquire by this block include each other's thread?
bool reaches(const Exec& x, const Released& r, std::uint8_t scope) {
  const auto least = static_cast<Scope>(std::min(r.scope, scope));
  if (r.block == x.block->number) return true;
  if (r.cluster == x.block->cluster->number && r.device == x.grid->device->index) {
    return least >= Scope::cluster;
  }
  if (r.device == x.grid->device->index) return least >= Scope::gpu;
  return least >= Scope::sys;
}

bool same_audience(const Released& a, const Released& b) {
  if (a.scope != b.scope || a.device != b.device) return false;
  if (a.scope >= static_cast<std::uint8_t>(Scope::gpu)) return true;
  if (a.scope == static_cast<std::uint8_t>(Scope::cluster)) return a.cluster == b.cluster;
  return a.block == b.block;
}

/// A release: whoever waits for the word is due to look, and so is who counts there.
void call_watchers(Exec& x, std::uint64_t key, bool counts) {
  if (counts) watch(x, key);
  if (x.run->watchers.empty()) return;
  const auto it = x.run->watchers.find(key);
  if (it == x.run->watchers.end()) return;
  for (Watcher& w : it->second)
    w.due = true;
}

void has_looked(Exec& x, std::uint64_t key) {
  x.split->looked_at = key;
  x.run->looked = x.run->calling;
  if (x.run->watchers.empty()) return;
  const auto it = x.run->watchers.find(key);
  if (it == x.run->watchers.end()) return;
  for (Watcher& w : it->second) {
    if (w.warp == x.warp) w.due = false;
  }
}

template <class Each>
void for_each_word(Exec& x, const Inst& in, int operand, Each each) {
  const Addresses a = read_addresses(x, in, operand);
  for (std::uint32_t left = a.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    std::uint64_t at = a.at[lane];
    Space space = in.info->space;
    if (space == Space::generic) {
      space = space_of(at);
      if (space != Space::global) at %= kWindowBytes;
    }
    if (space == Space::local || space == Space::param) continue;
    const auto bytes = static_cast<std::uint32_t>(in.info->bytes);
    for (int i = 0; i < in.info->vec; ++i) {
      const std::uint64_t offset = std::uint64_t{bytes} * static_cast<std::uint32_t>(i);
      each(lane, word_key(x, space, at + offset, bytes));
    }
  }
}

}  // namespace

std::uint64_t word_key(const Exec& x, Space space, std::uint64_t address, std::uint32_t bytes) {
  const std::uint64_t size = std::uint64_t{static_cast<unsigned>(std::bit_width(bytes))} << 56;
  if (space != Space::shared && space != Space::shared_cluster) return size | address;
  const auto rank = static_cast<std::uint32_t>(address >> kRankShift);
  const std::uint64_t block = x.block->cluster->number + rank;
  return std::uint64_t{1} << 63 | size | block << 24 | (address & 0xffffff);
}

void watch(Exec& x, std::uint64_t key) {
  constexpr std::size_t kMostWords = 1024, kMostWarps = 64;  // more would cost too much
  if (x.run->calls_left == 0) return;
  const bool full = x.run->watchers.size() >= kMostWords;
  if (full && x.run->watchers.find(key) == x.run->watchers.end()) return;
  auto& watchers = x.run->watchers[key];
  if (watchers.size() >= kMostWarps) return;
  const bool known = std::any_of(watchers.begin(), watchers.end(),
                                 [&](const Watcher& w) { return w.warp == x.warp; });
  if (!known) watchers.push_back({x.warp, false});
}

bool others_look_first(Exec& x, const Inst& in, int operand) {
  Run& run = *x.run;
  if (run.calling || run.watchers.empty() || run.calls_left == 0) return false;
  for_each_word(x, in, operand, [&](unsigned, std::uint64_t key) {
    const auto it = run.watchers.find(key);
    if (it == run.watchers.end()) return;
    for (Watcher& w : it->second) {
      if (w.due && w.warp != x.warp) run.called.push_back(w.warp);
      w.due = w.due && w.warp == x.warp;
    }
  });
  return !run.called.empty();
}

void release_word(Exec& x, unsigned lane, std::uint64_t key, const OpInfo& info, bool keep) {
  Knowledge& k = x.warp->clocks.lane(lane);
  if (keep && !releases(info.order) && !k.fenced) return;
  Released r;
  r.block = x.block->number;
  r.cluster = x.block->cluster->number;
  r.device = x.grid->device->index;
  r.scope = scope_number(info);
  if (releases(info.order)) {
    r.snapshot = release_snapshot(*x.warp, lane);
  } else if (k.fenced) {
    r.snapshot = k.fenced;
    r.scope = std::min(r.scope, k.fence_scope);
  }
  if (!r.snapshot) {
    if (!keep) x.run->sync_words.erase(key);
    return;
  }
  SyncWord& word = x.run->sync_words[key];
  if (!keep) word.released.clear();
  for (Released& old : word.released) {
    if (!same_audience(old, r)) continue;
    old.snapshot = join(old.snapshot, r.snapshot);
    call_watchers(x, key, keep);
    return;
  }
  word.released.push_back(std::move(r));
  call_watchers(x, key, keep);
}

void acquire_word(Exec& x, unsigned lane, std::uint64_t key, const OpInfo& info) {
  has_looked(x, key);
  if (x.run->sync_words.empty()) return;
  auto it = x.run->sync_words.find(key);
  if (it == x.run->sync_words.end()) return;
  const std::uint8_t scope = scope_number(info);
  for (const Released& r : it->second.released) {
    if (!reaches(x, r, scope)) continue;
    if (acquires(info.order)) {
      acquire_snapshot(*x.warp, lane, r.snapshot);
      continue;
    }
    x.warp->clocks.split();
    auto& pending = x.warp->clocks.lane(lane).pending;
    auto same = std::find_if(pending.begin(), pending.end(),
                             [&](const Released& p) { return same_audience(p, r); });
    if (same == pending.end()) {
      pending.push_back(r);
      pending.back().by_update = info.atom != AtomOp::none;
    } else {
      same->snapshot = join(same->snapshot, r.snapshot);
    }
  }
}

void before_strong_write(Exec& x, const Inst& in, int operand) {
  for_each_word(x, in, operand, [&](unsigned lane, std::uint64_t key) {
    release_word(x, lane, key, *in.info, false);
  });
}

void after_strong_read(Exec& x, const Inst& in, int operand) {
  for_each_word(x, in, operand,
                [&](unsigned lane, std::uint64_t key) { acquire_word(x, lane, key, *in.info); });
}

namespace {

/// All lanes at once: what one of them wrote counts for the others' copies only when they know of
/// it, and then its own fence counts too.
void proxy_fence_together(Exec& x) {
  LaneClocks& c = x.warp->clocks;
  c.common.async = join(c.common.async, own_clock(*x.warp, x.mask));
  raise_epochs(*x.warp, x.mask);
}

void proxy_fence(Exec& x) {
  if (!x.warp->clocks.each && !x.warp->clocks.common.foreign && (x.warp->live & ~x.mask) == 0) {
    proxy_fence_together(x);
    return;
  }
  x.warp->clocks.split();
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    Knowledge& k = x.warp->clocks.lane(lane);
    k.async = join(k.async, own_clock(*x.warp, 1U << lane));
    // What other blocks wrote is seen by the proxy of this one once it is known here.
    if (k.foreign) {
      auto seen = std::make_shared<Snapshot>(*k.foreign);
      for (Known& known : *seen)
        known.async = join(known.async, known.generic);
      k.foreign = std::move(seen);
    }
    raise_epochs(*x.warp, 1U << lane);
  }
}

void memory_fence(Exec& x, const OpInfo& info) {
  const std::uint8_t scope = scope_number(info);
  const bool acquire = info.order != Order::release;
  const bool release = info.order != Order::acquire;
  x.warp->clocks.split();
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    Knowledge& k = x.warp->clocks.lane(lane);
    if (acquire) {
      std::vector<Released> pending = std::move(k.pending);
      k.pending.clear();
      for (Released& p : pending) {
        if (reaches(x, p, scope)) acquire_snapshot(*x.warp, lane, p.snapshot);
      }
    }
    if (release) {
      k.fenced = release_snapshot(*x.warp, lane);
      k.fence_scope = scope;
    }
  }
}

/// fence.proxy.tensormap::generic.acquire: copies may use the map that the operand names.
void publish_maps(Exec& x, const Inst& in) {
  const Addresses a = read_addresses(x, in, 0);
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1)
    x.run->edited_maps.erase(a.at[static_cast<unsigned>(std::countr_zero(left))]);
}

}  // namespace

/// membar, fence, fence.proxy: proxies first, since their rows name scopes too.
Flow exec_fence(Exec& x, const Inst& in) {
  if (in.info->has<"tensormap::generic">()) {
    if (in.info->has<"acquire">()) publish_maps(x, in);
    return Flow::next;
  }
  if (in.info->has<"proxy">()) {
    // Aliases of one address are not modelled apart.
    if (!in.info->has<"alias">()) proxy_fence(x);
    return Flow::next;
  }
  if (in.info->has<"mbarrier_init">()) {
    fence_inits(x);
    return Flow::next;
  }
  memory_fence(x, *in.info);
  return Flow::next;
}

}  // namespace tilewright::emu::detail
