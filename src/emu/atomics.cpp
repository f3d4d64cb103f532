// SPDX-License-Identifier: Apache-2.0
// atom and red: lane after lane, each an update of one element or a vector of them.
#include "emu/atomics.h"

#include "emu/access.h"
#include "emu/atom_op.h"
#include "emu/handlers.h"
#include "emu/local.h"
#include "emu/order.h"
#include "emu/traffic.h"
#include "emu/warp_update.h"

#include <bit>
#include <cstring>

namespace tilewright::emu::detail {

namespace {

void update16(const Update& u, unsigned lane, std::byte* data, std::byte* fresh) {
  std::uint64_t old[2], value[2];
  std::memcpy(old, data, 16);
  auto read = [&](int operand, std::uint64_t* out) {
    const Slot& s = u.slot(operand, 0);
    out[0] = u.x.lanes<const std::uint64_t>(s)[lane];
    out[1] = u.x.lanes<const std::uint64_t>(s)[32 + lane];
  };
  read(u.value, value);
  bool write = true;
  if (u.info.atom == AtomOp::cas) {
    std::uint64_t compare[2];
    std::memcpy(compare, value, 16);
    read(u.compare, value);
    write = std::memcmp(compare, old, 16) == 0;
  }
  std::memcpy(fresh, write ? value : old, 16);
  if (u.result >= 0 && u.slot(u.result, 0).cls == Class::b128) {
    const Slot& d = u.slot(u.result, 0);
    u.x.set(d, lane, old[0]);
    u.x.lanes<std::uint64_t>(d)[32 + lane] = old[1];
  }
}

/// An element of 2, 4 or 8 bytes.
std::uint64_t element_at(const std::byte* data, std::int64_t bytes) {
  const auto load = [data]<class T>(T value) -> std::uint64_t {
    std::memcpy(&value, data, sizeof value);
    return value;
  };
  return bytes == 4   ? load(std::uint32_t{})
         : bytes == 8 ? load(std::uint64_t{})
                      : load(std::uint16_t{});
}

void update_elements(const Update& u, unsigned lane, const std::byte* data, std::byte* fresh,
                     Space space) {
  const std::int64_t bytes = u.info.bytes;
  const std::uint64_t keep = bytes >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * bytes)) - 1;
  for (int i = 0; i < u.info.vec; ++i) {
    const std::uint64_t old = element_at(data + i * bytes, bytes);
    const std::uint64_t value = u.x.value(u.slot(u.value, i), lane) & keep;
    std::uint64_t result = old;
    if (u.info.atom == AtomOp::cas) {
      const std::uint64_t swap = u.x.value(u.slot(u.compare, i), lane) & keep;
      result = old == value ? swap : old;
    } else {
      result = combine(u.info.atom, u.info.type, old, value, space == Space::global);
    }
    std::memcpy(fresh + i * bytes, &result, static_cast<std::size_t>(bytes));
    if (u.result >= 0) u.x.set(u.slot(u.result, i), lane, old);
  }
}

/// Writes the bytes; 1 if they differ from what was there.
template <std::size_t bytes>
std::uint64_t replace_bytes(std::byte* data, const std::byte* fresh) {
  const std::uint64_t differs = std::memcmp(fresh, data, bytes) != 0 ? 1 : 0;
  std::memcpy(data, fresh, bytes);
  return differs;
}
std::uint64_t replace(std::byte* data, const std::byte* fresh, std::int64_t bytes) {
  switch (bytes) {
    case 2:
      return replace_bytes<2>(data, fresh);
    case 4:
      return replace_bytes<4>(data, fresh);
    case 8:
      return replace_bytes<8>(data, fresh);
    case 16:
      return replace_bytes<16>(data, fresh);
    default:
      break;
  }
  const bool differs = std::memcmp(fresh, data, static_cast<std::size_t>(bytes)) != 0;
  std::memcpy(data, fresh, static_cast<std::size_t>(bytes));
  return differs ? 1 : 0;
}

void update_lane(const Update& u, unsigned lane, Space space, std::uint64_t address) {
  Exec& x = u.x;
  const std::int64_t bytes = u.info.bytes * u.info.vec;
  Located l;
  if (!locate(x, lane, space, address, bytes, bytes, Purpose::update, l)) {
    for (int i = 0; u.result >= 0 && i < u.info.vec; ++i)
      x.set(u.slot(u.result, i), lane, 0);
    return;
  }
  const bool by_red = u.result < 0;
  const std::uint64_t key = word_key(x, space, address, static_cast<std::uint32_t>(u.info.bytes));
  if (!by_red) acquire_word(x, lane, key, u.info);
  if (l.shadowed) {
    note_vector(x, lane, l.target, address, {u.info.vec, u.info.bytes}, Access::atomic,
                u.strength(), thread_actor(x, lane));
  }
  if (!is_initialized(l, 0, bytes)) report_uninitialized(x, lane, l.target, address, bytes);
  std::byte fresh[32];
  if (u.info.bytes == 16) {
    update16(u, lane, l.data, fresh);
  } else {
    update_elements(u, lane, l.data, fresh, space);
  }
  x.run->version += replace(l.data, fresh, bytes);
  set_initialized(l, 0, bytes, true);
  release_word(x, lane, key, u.info, true);
}

/// The lane-pure meaning of the same operation; null if there is none.
ptx::semantics::LaneFn half_function(AtomOp op, Type type) {
  struct Known {
    AtomOp op = AtomOp::none;
    Type type = Type::none;
    ptx::semantics::LaneFn fn = nullptr;
  };
  thread_local Known last;  // of a kernel's atomics most are the same
  if (last.op == op && last.type == type) return last.fn;
  const std::string text = std::string(op == AtomOp::add   ? "add.rn."
                                       : op == AtomOp::min ? "min."
                                                           : "max.") +
                           std::string(name(type));
  last = {op, type, ptx::semantics::resolve(text).fn};
  return last.fn;
}

}  // namespace

bool is_half(Type type) {
  return type == Type::f16 || type == Type::bf16 || type == Type::f16x2 || type == Type::bf16x2;
}

std::uint64_t combine_half(AtomOp op, Type type, std::uint64_t a, std::uint64_t b) {
  const ptx::semantics::LaneFn fn = half_function(op, type);
  if (fn == nullptr) return a;
  alignas(128) std::array<std::uint32_t, 32> d{}, s{}, t{};
  s[0] = static_cast<std::uint32_t>(a);
  t[0] = static_cast<std::uint32_t>(b);
  ptx::semantics::LaneArgs args;
  args.dst[0] = d.data();
  args.src[0] = s.data();
  args.src[1] = t.data();
  args.mask = 1;
  fn(args);
  return d[0];
}

std::uint64_t combine(AtomOp op, Type type, std::uint64_t a, std::uint64_t b, bool flush) {
  const auto with = [&]<class T>(T) {
    return with_operation<T>(op, type, flush, [&](auto f) -> std::uint64_t {
      return f(static_cast<T>(a), static_cast<T>(b), T{0});
    });
  };
  return bits(type) == 64 ? with(std::uint64_t{}) : with(std::uint32_t{});
}

Flow exec_atomic(Exec& x, const Inst& in) {
  const OpInfo& info = *in.info;
  const bool red = info.opcode->row().opcode == "red";
  const int first = red ? 0 : 1;
  if (others_look_first(x, in, first)) return Flow::stop;
  const Update u{x, in, info, first, first + 1, first + 2, red ? -1 : 0};
  std::uint32_t defined = x.defined(u.slot(u.value, 0));
  if (info.atom == AtomOp::cas) defined &= x.defined(u.slot(u.compare, 0));
  const std::uint32_t undefined = x.mask & ~defined;
  x.grid->report.counters.atomics += static_cast<std::uint64_t>(std::popcount(x.mask));
  if (undefined == 0 && update_row(u)) return Flow::next;
  const Addresses a = read_addresses(x, in, u.address);
  if (undefined != 0) report_undefined(x, undefined, "operand of an atomic");
  if (update_scattered(u, a)) return Flow::next;
  for (std::uint32_t left = a.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    std::uint64_t at = a.at[lane];
    Space space = info.space;
    if (space == Space::generic) {
      space = space_of(at);
      if (space != Space::global) at %= kWindowBytes;
      if (space == Space::shared) space = Space::shared_cluster;
    }
    update_lane(u, lane, space, at);
  }
  if (info.space != Space::generic) {
    count_access(x, info.space, a, info.bytes * info.vec, Access::atomic);
  }
  return Flow::next;
}

}  // namespace tilewright::emu::detail
