// SPDX-License-Identifier: Apache-2.0
// multimem.ld_reduce, st and red: one address, the same bytes on several devices.
#include "emu/access.h"
#include "emu/atomics.h"
#include "emu/handlers.h"
#include "emu/order.h"

#include <bit>
#include <cstring>

namespace tilewright::emu::detail {

namespace {

void refuse(Exec& x, unsigned lane, std::uint64_t address) {
  if (!x.checks(Kind::out_of_bounds)) return;
  report(x, {.kind = Kind::out_of_bounds,
             .lane = lane,
             .message = "accesses " + hex(address) +
                        ", which is in no multicast object; make one with Fabric::multicast",
             .range = {},
             .other = {}});
}

/// The addresses behind a multicast address; empty (and a report) if there are none.
std::vector<std::uint64_t> members_of(Exec& x, unsigned lane, std::uint64_t address,
                                      std::int64_t bytes) {
  const Allocation* a = x.run->memory->at_or_below(address);
  std::vector<std::uint64_t> out;
  if (a == nullptr || a->members.empty() || a->freed || !a->contains(address, bytes)) {
    refuse(x, lane, address);
    return out;
  }
  for (const std::uint64_t member : a->members)
    out.push_back(member + (address - a->base));
  return out;
}

struct Lane {
  Exec& x;
  const Inst& in;
  unsigned lane;
  std::int64_t bytes;  ///< of all elements
  Strength strength;

  bool find(std::uint64_t at, Purpose purpose, Access access, Located& l) const {
    if (!locate(x, lane, Space::global, at, bytes, bytes, purpose, l)) return false;
    if (l.shadowed) {
      note_vector(x, lane, l.target, at, {in.info->vec, in.info->bytes}, access, strength,
                  thread_actor(x, lane));
    }
    return true;
  }
};

std::uint64_t key_of(const Lane& t, std::uint64_t at) {
  return word_key(t.x, Space::global, at, static_cast<std::uint32_t>(t.in.info->bytes));
}

void load_reduce(const Lane& t, const std::vector<std::uint64_t>& members) {
  const OpInfo& info = *t.in.info;
  std::array<std::uint64_t, 8> sum{};
  bool first = true;
  for (const std::uint64_t at : members) {
    Located l;
    if (!t.find(at, Purpose::read, Access::read, l)) continue;
    if (!is_initialized(l, 0, t.bytes)) report_uninitialized(t.x, t.lane, l.target, at, t.bytes);
    if (info.order == Order::acquire) acquire_word(t.x, t.lane, key_of(t, at), info);
    for (int i = 0; i < info.vec; ++i) {
      std::uint64_t value = 0;
      if (l.data != nullptr) {
        std::memcpy(&value, l.data + i * info.bytes, static_cast<std::size_t>(info.bytes));
      }
      auto& s = sum[static_cast<std::size_t>(i)];
      s = first ? value : combine(info.atom, info.type, s, value, false);
    }
    first = false;
  }
  for (int i = 0; i < info.vec; ++i) {
    t.x.set(t.in.slot_at(0, i), t.lane, sum[static_cast<std::size_t>(i)]);
  }
}

void write_all(const Lane& t, const std::vector<std::uint64_t>& members, bool reduces) {
  const OpInfo& info = *t.in.info;
  t.x.run->changed();
  for (const std::uint64_t at : members) {
    Located l;
    const Access access = reduces ? Access::atomic : Access::write;
    if (!t.find(at, reduces ? Purpose::update : Purpose::write, access, l)) continue;
    if (info.order == Order::release) release_word(t.x, t.lane, key_of(t, at), info, reduces);
    for (int i = 0; i < info.vec; ++i) {
      std::byte* element = l.data + i * info.bytes;
      std::uint64_t value = t.x.value(t.in.slot_at(1, i), t.lane);
      if (reduces) {
        std::uint64_t old = 0;
        std::memcpy(&old, element, static_cast<std::size_t>(info.bytes));
        value = combine(info.atom, info.type, old, value, false);
      }
      std::memcpy(element, &value, static_cast<std::size_t>(info.bytes));
    }
    set_initialized(l, 0, t.bytes, true);
  }
}

}  // namespace

Flow exec_multimem(Exec& x, const Inst& in) {
  const OpInfo& info = *in.info;
  const bool loads = in.info->has<"ld_reduce">(), reduces = in.info->has<"red">();
  const Addresses a = read_addresses(x, in, loads ? 1 : 0);
  Strength strength = strength_of(info);
  if (reduces && strength == Strength::weak) strength = Strength::gpu;
  for (std::uint32_t left = a.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const Lane t{x, in, lane, info.bytes * info.vec, strength};
    const std::vector<std::uint64_t> members = members_of(x, lane, a.at[lane], t.bytes);
    if (members.empty()) continue;
    if (loads) {
      load_reduce(t, members);
    } else {
      write_all(t, members, reduces);
    }
  }
  return Flow::next;
}

}  // namespace tilewright::emu::detail
