// SPDX-License-Identifier: Apache-2.0
// atom and red: lane after lane, each an update of one element or a vector of them.
#include "emu/atomics.h"

#include "emu/access.h"
#include "emu/handlers.h"
#include "emu/local.h"
#include "emu/order.h"
#include "emu/traffic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace tilewright::emu::detail {

namespace {

template <class T>
T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
std::uint64_t to_bits(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

float flushed(float v) {
  return std::bit_cast<std::uint32_t>(v) << 1 < 0x0100'0000U ? std::copysign(0.0F, v) : v;
}

std::uint64_t combine_integer(AtomOp op, Type type, std::uint64_t a, std::uint64_t b) {
  const bool wide = bits(type) == 64;
  const auto sa = wide ? static_cast<std::int64_t>(a) : static_cast<std::int32_t>(a);
  const auto sb = wide ? static_cast<std::int64_t>(b) : static_cast<std::int32_t>(b);
  const bool less = is_integer(type) && is_signed(type) ? sa < sb : a < b;
  switch (op) {
    case AtomOp::add:
      return a + b;
    case AtomOp::inc:
      return a >= b ? 0 : a + 1;
    case AtomOp::dec:
      return a == 0 || a > b ? b : a - 1;
    case AtomOp::min:
      return less ? a : b;
    case AtomOp::max:
      return less ? b : a;
    case AtomOp::and_:
      return a & b;
    case AtomOp::or_:
      return a | b;
    case AtomOp::xor_:
      return a ^ b;
    case AtomOp::exch:
      return b;
    case AtomOp::cas:
    case AtomOp::none:
      break;
  }
  return a;
}

/// f16, bf16 and their pairs: by the lane-pure meaning of the same operation.
std::uint64_t combine_half(AtomOp op, Type type, std::uint64_t a, std::uint64_t b) {
  const std::string text = std::string(op == AtomOp::add   ? "add.rn."
                                       : op == AtomOp::min ? "min."
                                                           : "max.") +
                           std::string(name(type));
  const ptx::semantics::Meaning meaning = ptx::semantics::resolve(text);
  if (!meaning) return a;
  alignas(128) std::array<std::uint32_t, 32> d{}, s{}, t{};
  s[0] = static_cast<std::uint32_t>(a);
  t[0] = static_cast<std::uint32_t>(b);
  ptx::semantics::LaneArgs args;
  args.dst[0] = d.data();
  args.src[0] = s.data();
  args.src[1] = t.data();
  args.mask = 1;
  meaning.fn(args);
  return d[0];
}

struct Update {
  Exec& x;
  const Inst& in;
  const OpInfo& info;
  int address, value, compare, result;  ///< operand numbers; -1: absent

  const Slot& slot(int operand, int i) const {
    return in.slot[info.start[static_cast<std::size_t>(operand)] + static_cast<unsigned>(i)];
  }
};

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
  const std::uint64_t key = word_key(x, space, address);
  if (!by_red) acquire_word(x, lane, key, u.info);
  if (l.shadowed) {
    Strength strength = strength_of(u.info);
    if (strength == Strength::weak) strength = Strength::gpu;
    note_access(x, lane, l.target, address, bytes, Access::atomic, strength, thread_actor(x, lane));
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

/// Updates of one page, or of shared memory, by a warp that neither acquires nor releases by them.
class TogetherUpdate {
 public:
  TogetherUpdate(const Update& u, Space space, const Addresses& a) : u_(u), x_(u.x), a_(a) {
    possible_ = u.info.vec == 1 && (u.info.bytes == 4 || u.info.bytes == 8) && plain() &&
                (space == Space::global || space == Space::shared) && find(space);
  }
  /// False, with nothing done, if some lane needs a closer look.
  bool run(Space space) {
    if (!possible_ || (place_.shadowed && !note())) return false;
    std::uint64_t changes = 0;
    const bool flush = space == Space::global;
    const bool wide = u_.info.bytes == 8;
    for_lanes(a_.mask, [&](unsigned lane) {
      std::byte* data = place_.data + (a_.at[lane] - first_);
      changes += wide ? update<std::uint64_t>(lane, data, flush)
                      : update<std::uint32_t>(lane, data, flush);
    });
    if (u_.result >= 0) x_.defined(u_.slot(u_.result, 0)) |= a_.mask;
    x_.run->version += changes;
    return true;
  }

 private:
  const Update& u_;
  Exec& x_;
  const Addresses& a_;
  Located place_;
  std::uint64_t first_ = ~std::uint64_t{0};
  bool possible_ = false;

  bool plain() const {
    const LaneClocks& c = x_.warp->clocks;
    const Order order = u_.info.order;
    const Class cls = u_.info.bytes == 8 ? Class::b64 : Class::b32;
    const bool fits = u_.slot(u_.value, 0).cls == cls &&
                      (u_.result < 0 || u_.slot(u_.result, 0).cls == cls) &&
                      (u_.info.atom != AtomOp::cas || u_.slot(u_.compare, 0).cls == cls);
    return fits && (order == Order::weak || order == Order::relaxed) &&
           x_.run->sync_words.empty() && !c.each && !c.common.fenced;
  }
  bool find(Space space) {
    const auto bytes = static_cast<std::uint64_t>(u_.info.bytes);
    std::uint64_t last = 0, odd = 0;
    for_lanes(a_.mask, [&](unsigned lane) {
      first_ = std::min(first_, a_.at[lane]);
      last = std::max(last, a_.at[lane]);
      odd |= a_.at[lane] & (bytes - 1);
    });
    const std::uint64_t all = last + bytes - first_;
    if (odd != 0 || all > static_cast<std::uint64_t>(kPageBytes)) return false;
    const auto count = static_cast<std::int64_t>(all);
    return locate_quietly(x_, space, first_, count, Purpose::update, place_) &&
           is_initialized(place_, 0, count);
  }
  /// Strong accesses of this block, and those that all of it know of, are no conflict.
  bool note() {
    Strength strength = strength_of(u_.info);
    if (strength == Strength::weak) strength = Strength::gpu;
    const auto words = static_cast<std::uint64_t>(u_.info.bytes / 4);
    const Settled settled(x_, place_.target);
    const std::uint32_t block = x_.block->number;
    std::uint64_t last = 0;
    for_lanes(a_.mask, [&](unsigned lane) { last = std::max(last, a_.at[lane] - first_); });
    const ShadowView view = place_.target.map->view(place_.target.word, last / 4 + words);
    const auto harmless = [&](Record r) {
      return settled(r.bits) || (r.block() == block && r.scope() != 0);
    };
    bool good = true;
    for_lanes(a_.mask, [&](unsigned lane) {
      for (std::uint64_t i = 0; i < words; ++i) {
        const std::uint64_t word = (a_.at[lane] - first_) / 4 + i;
        good &= harmless({view.writer[word]}) && harmless({view.reader[word]});
      }
    });
    if (!good) return false;
    const auto scope = static_cast<std::uint32_t>(strength);
    for_lanes(a_.mask, [&](unsigned lane) {
      for (std::uint64_t i = 0; i < words; ++i) {
        const std::uint64_t word = (a_.at[lane] - first_) / 4 + i;
        view.writer[word] =
            Record::make(x_.warp->clocks.epoch[lane], block, x_.warp->thread(lane), scope, 15).bits;
        view.writer_pc[word] = x_.pc;
        view.reader[word] = 0;
      }
    });
    return true;
  }
  /// 1 if the element changed.
  template <class T>
  std::uint64_t update(unsigned lane, std::byte* data, bool flush) const {
    T old;
    std::memcpy(&old, data, sizeof old);
    const T value = x_.lanes<const T>(u_.slot(u_.value, 0))[lane];
    T fresh;
    if (u_.info.atom == AtomOp::cas) {
      fresh = old == value ? x_.lanes<const T>(u_.slot(u_.compare, 0))[lane] : old;
    } else {
      fresh = static_cast<T>(combine(u_.info.atom, u_.info.type, old, value, flush));
    }
    std::memcpy(data, &fresh, sizeof fresh);
    if (u_.result >= 0) x_.lanes<T>(u_.slot(u_.result, 0))[lane] = old;
    return fresh != old ? 1 : 0;
  }
};

}  // namespace

std::uint64_t combine(AtomOp op, Type type, std::uint64_t a, std::uint64_t b, bool flush) {
  if (op != AtomOp::exch) {
    if (type == Type::f32 && op == AtomOp::add) {
      const auto fa = from_bits<float>(a), fb = from_bits<float>(b);
      return flush ? to_bits(flushed(flushed(fa) + flushed(fb))) : to_bits(fa + fb);
    }
    if (type == Type::f64 && op == AtomOp::add) {
      return to_bits(from_bits<double>(a) + from_bits<double>(b));
    }
    if (type == Type::f16 || type == Type::bf16 || type == Type::f16x2 || type == Type::bf16x2) {
      return combine_half(op, type, a, b);
    }
  }
  return combine_integer(op, type, a, b);
}

Flow exec_atomic(Exec& x, const Inst& in) {
  const OpInfo& info = *in.info;
  const bool red = info.opcode->row().opcode == "red";
  const int first = red ? 0 : 1;
  const Update u{x, in, info, first, first + 1, first + 2, red ? -1 : 0};
  const Addresses a = read_addresses(x, in, u.address);
  std::uint32_t defined = x.defined(u.slot(u.value, 0));
  if (info.atom == AtomOp::cas) defined &= x.defined(u.slot(u.compare, 0));
  if ((x.mask & ~defined) != 0) report_undefined(x, x.mask & ~defined, "operand of an atomic");
  x.grid->report.counters.atomics += static_cast<std::uint64_t>(std::popcount(a.mask));
  std::uint32_t each = a.mask;
  if (TogetherUpdate(u, info.space, a).run(info.space)) each = 0;
  for (std::uint32_t left = each; left != 0; left &= left - 1) {
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
