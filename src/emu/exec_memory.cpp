// SPDX-License-Identifier: Apache-2.0
// ld and st: a row of lanes at once, or one element for all of them, else lane by lane.
#include "emu/access.h"
#include "emu/handlers.h"
#include "emu/local.h"
#include "emu/order.h"
#include "emu/row.h"
#include "emu/traffic.h"

#include <bit>
#include <cstring>

namespace tilewright::emu::detail {

namespace {

std::uint64_t read_element(const std::byte* data, std::int64_t bytes, Type type) {
  std::uint64_t value = 0;
  std::memcpy(&value, data, static_cast<std::size_t>(bytes));
  return extended(value, bytes, type);
}

struct Transfer {
  Exec& x;
  const Inst& in;
  const OpInfo& info;
  Space space;
  const Addresses& addresses;
  int data_operand;
  std::int64_t lane_bytes;
  Strength strength;

  const Slot& element(int i) const {
    return in.slot[info.start[static_cast<std::size_t>(data_operand)] + static_cast<unsigned>(i)];
  }
};

bool same_address(const Addresses& a) {
  const auto first = static_cast<unsigned>(std::countr_zero(a.mask));
  std::uint32_t differ = 0;
  for (unsigned l = 0; l < 32; ++l) {
    differ |= static_cast<std::uint32_t>(a.at[l] != a.at[first]) << l;
  }
  return (differ & a.mask) == 0;
}

void load_lane(const Transfer& t, unsigned lane, const Located& l) {
  Exec& x = t.x;
  for (int i = 0; i < t.info.vec; ++i) {
    const Slot& slot = t.element(i);
    if (slot.cls == Class::sink) continue;
    const std::byte* from = l.data == nullptr ? nullptr : l.data + i * t.info.bytes;
    if (t.info.bytes == 16) {
      std::uint64_t half[2] = {0, 0};
      if (from != nullptr) std::memcpy(half, from, 16);
      x.set(slot, lane, half[0]);
      x.lanes<std::uint64_t>(slot)[32 + lane] = half[1];
    } else {
      x.set(slot, lane, from == nullptr ? 0 : read_element(from, t.info.bytes, t.info.type));
    }
  }
}

void load_each(const Transfer& t) {
  Exec& x = t.x;
  for (std::uint32_t left = t.addresses.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t address = t.addresses.at[lane];
    Located l;
    if (!locate(x, lane, t.space, address, t.lane_bytes, t.lane_bytes, Purpose::read, l)) {
      load_lane(t, lane, Located{});
      continue;
    }
    if (l.shadowed) {
      note_vector(x, lane, l.target, address, {t.info.vec, t.info.bytes}, Access::read, t.strength,
                  thread_actor(x, lane));
    }
    if (!is_initialized(l, 0, t.lane_bytes)) {
      report_uninitialized(x, lane, l.target, address, t.lane_bytes);
    }
    load_lane(t, lane, l);
  }
}

bool load_broadcast(const Transfer& t) {
  Exec& x = t.x;
  if (t.lane_bytes % 4 != 0 || t.info.bytes == 16) return false;
  const auto first = static_cast<unsigned>(std::countr_zero(t.addresses.mask));
  const std::uint64_t address = t.addresses.at[first];
  if (address % static_cast<std::uint64_t>(t.lane_bytes) != 0) return false;
  Located l;
  if (!locate_quietly(x, t.space, address, t.lane_bytes, Purpose::read, l)) return false;
  if (l.data == nullptr || !is_initialized(l, 0, t.lane_bytes)) return false;
  const RowAccess row{static_cast<unsigned>(t.lane_bytes / 4), Access::read, t.strength, false,
                      static_cast<std::uint32_t>(t.info.bytes)};
  if (l.shadowed && !note_broadcast(x, t.addresses.mask, l.target, row)) return false;
  for (int i = 0; i < t.info.vec; ++i) {
    const Slot& slot = t.element(i);
    if (slot.cls == Class::sink) continue;
    const std::uint64_t value = read_element(l.data + i * t.info.bytes, t.info.bytes, t.info.type);
    for (std::uint32_t left = t.addresses.mask; left != 0; left &= left - 1) {
      x.set(slot, static_cast<unsigned>(std::countr_zero(left)), value);
    }
  }
  return true;
}

void load_part(const Transfer& t) {
  switch (t.space) {
    case Space::local:
      load_local(t.x, t.in, t.addresses, t.data_operand);
      return;
    case Space::param:
      load_param(t.x, t.in, t.addresses, t.data_operand);
      return;
    case Space::generic:
    case Space::global:
    case Space::shared:
    case Space::shared_cluster:
    case Space::const_:
      break;
  }
  count_access(t.x, t.space, t.addresses, t.lane_bytes, Access::read);
  if (!same_address(t.addresses) || !load_broadcast(t)) load_each(t);
}

void store_lane(const Transfer& t, unsigned lane, std::byte* out) {
  for (int i = 0; i < t.info.vec; ++i) {
    const Slot& slot = t.element(i);
    std::uint64_t half[2] = {t.x.value(slot, lane), 0};
    if (t.info.bytes == 16) half[1] = t.x.lanes<const std::uint64_t>(slot)[32 + lane];
    std::memcpy(out + i * t.info.bytes, half, static_cast<std::size_t>(t.info.bytes));
  }
}

std::uint32_t undefined_lanes(const Transfer& t) {
  std::uint32_t all = ~std::uint32_t{0};
  for (int i = 0; i < t.info.vec; ++i)
    all &= t.x.defined(t.element(i));
  return t.addresses.mask & ~all;
}

void store_each(const Transfer& t, std::uint32_t undefined) {
  Exec& x = t.x;
  for (std::uint32_t left = t.addresses.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t address = t.addresses.at[lane];
    Located l;
    if (!locate(x, lane, t.space, address, t.lane_bytes, t.lane_bytes, Purpose::write, l)) continue;
    std::byte fresh[32];
    store_lane(t, lane, fresh);
    if (l.shadowed) {
      note_vector(x, lane, l.target, address, {t.info.vec, t.info.bytes}, Access::write, t.strength,
                  thread_actor(x, lane), fresh, l.data);
    }
    std::memcpy(l.data, fresh, static_cast<std::size_t>(t.lane_bytes));
    set_initialized(l, 0, t.lane_bytes, (undefined >> lane & 1) == 0);
  }
}

void store_part(const Transfer& t) {
  switch (t.space) {
    case Space::local:
      store_local(t.x, t.in, t.addresses, t.data_operand);
      return;
    case Space::param:
      report(t.x, {.kind = Kind::out_of_bounds,
                   .lane = static_cast<unsigned>(std::countr_zero(t.addresses.mask)),
                   .message = "writes to the kernel's parameters",
                   .range = {},
                   .other = {}});
      return;
    case Space::generic:
    case Space::global:
    case Space::shared:
    case Space::shared_cluster:
    case Space::const_:
      break;
  }
  const std::uint32_t undefined = undefined_lanes(t);
  if (undefined != 0 && t.space == Space::global) {
    report_undefined(t.x, undefined, "the value stored");
    for (int i = 0; i < t.info.vec; ++i) {
      const Slot& slot = t.element(i);
      if (slot.in_frame) t.x.defined(slot) |= undefined;
    }
  }
  count_access(t.x, t.space, t.addresses, t.lane_bytes, Access::write);
  t.x.run->changed();
  store_each(t, t.space == Space::global ? 0 : undefined);
}

template <class Part>
void for_each_space(Exec& x, const Inst& in, int address_operand, int data_operand, Part part) {
  const OpInfo& info = *in.info;
  const Addresses addresses = read_addresses(x, in, address_operand);
  const std::int64_t lane_bytes = info.bytes * info.vec;
  const Strength strength = strength_of(info);
  if (info.space != Space::generic) {
    part(Transfer{x, in, info, info.space, addresses, data_operand, lane_bytes, strength});
    return;
  }
  std::array<SpacePart, 5> parts;
  const int count = split_by_space(addresses, parts);
  for (int i = 0; i < count; ++i) {
    const SpacePart& p = parts[static_cast<unsigned>(i)];
    // A generic address reaches the shared memory of the whole cluster.
    const Space space = p.space == Space::shared ? Space::shared_cluster : p.space;
    part(Transfer{x, in, info, space, p.addresses, data_operand, lane_bytes, strength});
  }
}

}  // namespace

std::uint64_t extended(std::uint64_t value, std::int64_t bytes, Type type) {
  if (bytes >= 8 || !is_integer(type) || !is_signed(type)) return value;
  const int shift = static_cast<int>(64 - 8 * bytes);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << shift) >> shift);
}

Flow exec_load(Exec& x, const Inst& in) {
  if (!load_row(x, in)) for_each_space(x, in, 1, 0, load_part);
  if (in.info->order != Order::weak) after_strong_read(x, in, 1);
  return Flow::next;
}

Flow exec_store(Exec& x, const Inst& in) {
  if (in.info->order != Order::weak) {
    if (others_look_first(x, in, 0)) return Flow::stop;
    before_strong_write(x, in, 0);
  }
  if (!store_row(x, in)) for_each_space(x, in, 0, 1, store_part);
  return Flow::next;
}

/// ld.param of an entry: the same bytes for every lane.
Flow exec_load_param(Exec& x, const Inst& in) {
  const Addresses a = read_addresses(x, in, 1);
  load_param(x, in, a, 0);
  return Flow::next;
}

/// prefetch, discard and the like: no effect but on speed; addresses are not checked.
/// `discard` leaves 128 bytes undetermined; prefetches and priorities change no memory.
Flow exec_prefetch(Exec& x, const Inst& in) {
  if (in.info->opcode->row().opcode != "discard") return Flow::next;
  constexpr std::int64_t kLine = 128;
  const Addresses a = read_addresses(x, in, 0);
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    Located l;
    if (!locate(x, lane, Space::global, a.at[lane], kLine, kLine, Purpose::write, l)) continue;
    if (l.shadowed) {
      note_access(x, lane, l.target, a.at[lane], kLine, Access::write, Strength::weak,
                  thread_actor(x, lane));
    }
    set_initialized(l, 0, kLine, false);
    x.run->changed();
  }
  return Flow::next;
}

}  // namespace tilewright::emu::detail
