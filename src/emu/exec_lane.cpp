// SPDX-License-Identifier: Apache-2.0
// Lane-pure instructions: gather operand pointers, compute 32 lanes, pass on what is undefined.
#include "emu/grid.h"
#include "emu/handlers.h"

#include <array>
#include <span>
#include <utility>

namespace tilewright::emu::detail {

namespace {

/// One result, `count` operands; bit i of `constants`: operand i is one.
template <unsigned count, unsigned constants>
Flow run(Exec& x, const Inst& in) {
  const Slot* const slot = in.slot;
  std::byte* const frame = x.frame;
  std::uint32_t all = ~std::uint32_t{0};
  x.args.dst[0] = frame + slot[0].value;
  for (unsigned i = 0; i < count; ++i) {
    const Slot& source = slot[1 + i];
    if ((constants >> i & 1) != 0) {
      x.args.src[i] = reinterpret_cast<const void*>(source.value);
    } else {
      x.args.src[i] = frame + source.value;
      all &= *reinterpret_cast<const std::uint32_t*>(frame + source.defined);
    }
  }
  x.args.mask = x.mask;
  in.fn(x.args);
  auto& d = *reinterpret_cast<std::uint32_t*>(frame + slot[0].defined);
  d = (d & ~x.mask) | (all & x.mask);
  return Flow::next;
}

template <unsigned count, unsigned... constants>
Handler among(unsigned wanted, std::integer_sequence<unsigned, constants...>) {
  constexpr std::array<Handler, sizeof...(constants)> kRun = {run<count, constants>...};
  return kRun[wanted];
}
template <unsigned count>
Handler with_constants(unsigned wanted) {
  return among<count>(wanted, std::make_integer_sequence<unsigned, 1U << count>());
}

inline void bind(Exec& x, const Inst& in, ptx::semantics::LaneArgs& args) {
  const Slot* slot = in.slot;
  for (unsigned i = 0; i < in.dsts; ++i, ++slot) {
    args.dst[i] = slot->cls == Class::sink ? nullptr : x.lanes<void>(*slot);
  }
  for (unsigned i = 0; i < in.srcs; ++i, ++slot)
    args.src[i] = x.lanes<const void>(*slot);
  args.mask = x.mask;
}

inline void propagate(Exec& x, const Inst& in) {
  std::uint32_t all = ~std::uint32_t{0};
  const Slot* slot = in.slot + in.dsts;
  for (unsigned i = 0; i < in.srcs; ++i, ++slot)
    all &= x.defined(*slot);
  slot = in.slot;
  for (unsigned i = 0; i < in.dsts; ++i, ++slot) {
    if (slot->cls == Class::sink) continue;
    std::uint32_t& d = x.defined(*slot);
    d = (d & ~x.mask) | (all & x.mask);
  }
}

}  // namespace

Flow exec_lane(Exec& x, const Inst& in) {
  ptx::semantics::LaneArgs args;
  bind(x, in, args);
  in.fn(args);
  propagate(x, in);
  return Flow::next;
}

/// The usual shapes: one result, one to three operands.
Handler lane_handler(std::span<const Slot> slots, unsigned dsts) {
  const std::size_t srcs = slots.size() - dsts;
  if (dsts != 1 || srcs < 1 || srcs > 3) return exec_lane;
  unsigned constants = 0;
  for (std::size_t i = 0; i < srcs; ++i)
    constants |= (slots[1 + i].in_frame ? 0U : 1U) << i;
  return srcs == 1   ? with_constants<1>(constants)
         : srcs == 2 ? with_constants<2>(constants)
                     : with_constants<3>(constants);
}

Flow exec_lane_negated(Exec& x, const Inst& in) {
  ptx::semantics::LaneArgs args;
  bind(x, in, args);
  std::array<std::uint32_t, 5> complement;
  for (unsigned i = 0; i < in.srcs; ++i) {
    const Slot& slot = in.slot[in.dsts + i];
    if (!slot.negated || slot.cls != Class::pred) continue;
    complement[i] = ~*x.lanes<const std::uint32_t>(slot);
    args.src[i] = &complement[i];
  }
  in.fn(args);
  propagate(x, in);
  return Flow::next;
}

Flow exec_lane_carry(Exec& x, const Inst& in) {
  ptx::semantics::LaneArgs args;
  bind(x, in, args);
  args.carry = reinterpret_cast<std::uint32_t*>(x.frame + in.target);
  in.fn(args);
  propagate(x, in);
  return Flow::next;
}

/// mov.b128 between registers and pairs of 64-bit ones.
Flow exec_copy128(Exec& x, const Inst& in) {
  auto half = [&](unsigned first, unsigned count, unsigned i) -> std::uint64_t* {
    if (count == 2) {
      const Slot& s = in.slot[first + i];
      return s.cls == Class::sink ? nullptr : x.lanes<std::uint64_t>(s);
    }
    return x.lanes<std::uint64_t>(in.slot[first]) + 32 * i;
  };
  const unsigned dsts = in.info->count[0];
  const unsigned srcs = dsts == 2 ? 1 : 2;
  for (unsigned i = 0; i < 2; ++i) {
    std::uint64_t* to = half(0, dsts, i);
    const std::uint64_t* from = half(dsts, in.slot[dsts].cls == Class::b128 ? 1 : srcs, i);
    if (to == nullptr) continue;
    for (unsigned l = 0; l < 32; ++l) {
      if ((x.mask >> l & 1) != 0) to[l] = from[l];
    }
  }
  std::uint32_t all = x.defined(in.slot[dsts]);
  if (in.slot[dsts].cls != Class::b128) all &= x.defined(in.slot[dsts + 1]);
  for (unsigned i = 0; i < dsts; ++i) {
    if (in.slot[i].cls == Class::sink) continue;
    std::uint32_t& d = x.defined(in.slot[i]);
    d = (d & ~x.mask) | (all & x.mask);
  }
  return Flow::next;
}

std::uint64_t Exec::other_value(const Slot& slot, unsigned lane) const {
  switch (slot.cls) {
    case Class::b32:
      return lanes<const std::uint32_t>(slot)[lane];
    case Class::b64:
    case Class::b128:
      return lanes<const std::uint64_t>(slot)[lane];
    case Class::pred: {
      const std::uint32_t bit = *lanes<const std::uint32_t>(slot) >> lane & 1;
      return slot.negated ? bit ^ 1 : bit;
    }
    case Class::none:
    case Class::sink:
      return 0;
  }
  return 0;
}

void Exec::set(const Slot& slot, unsigned lane, std::uint64_t value) const {
  switch (slot.cls) {
    case Class::b32:
      lanes<std::uint32_t>(slot)[lane] = static_cast<std::uint32_t>(value);
      break;
    case Class::b64:
    case Class::b128:
      lanes<std::uint64_t>(slot)[lane] = value;
      break;
    case Class::pred: {
      std::uint32_t& word = *lanes<std::uint32_t>(slot);
      word = (word & ~(1U << lane)) | (static_cast<std::uint32_t>(value & 1) << lane);
      break;
    }
    case Class::none:
    case Class::sink:
      return;
  }
  defined(slot) |= 1U << lane;
}

}  // namespace tilewright::emu::detail
