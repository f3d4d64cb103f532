// SPDX-License-Identifier: Apache-2.0
// Warp-wide instructions without memory: shuffle, vote, match, redux, elect.
#include "emu/gather.h"
#include "emu/grid.h"
#include "emu/handlers.h"

#include <bit>

namespace tilewright::emu::detail {

namespace {

unsigned first_lane(std::uint32_t mask) { return static_cast<unsigned>(std::countr_zero(mask)); }

const Slot& operand(const Inst& in, int i) {
  return in.slot[in.info->start[static_cast<std::size_t>(i)]];
}

/// Calls `each(lanes)` for the lanes of x.mask that name the same members.
template <class Each>
void for_each_group(Exec& x, const Slot& members, Each each) {
  for (std::uint32_t left = x.mask; left != 0;) {
    const unsigned lane = first_lane(left);
    const auto m = static_cast<std::uint32_t>(x.value(members, lane));
    std::uint32_t group = 0;
    for (std::uint32_t l = left; l != 0; l &= l - 1) {
      if (static_cast<std::uint32_t>(x.value(members, first_lane(l))) == m) {
        group |= 1U << first_lane(l);
      }
    }
    left &= ~group;
    each(group);
  }
}

void report_bad_source(Exec& x, unsigned lane, unsigned source) {
  if (!x.checks(Kind::shuffle_mask)) return;
  report(x, {.kind = Kind::shuffle_mask,
             .lane = lane,
             .message = "reads the value of lane " + std::to_string(source) +
                        ", which does not take part; its result is undefined",
             .range = {},
             .other = {}});
}

struct ShuffleSource {
  unsigned lane;
  bool inside;
};

ShuffleSource source_of(const Inst& in, unsigned lane, std::uint32_t b, std::uint32_t c) {
  const std::uint32_t segment = c >> 8 & 31;
  const std::uint32_t clamp = c & 31;
  const std::uint32_t bval = b & 31;
  const std::uint32_t most = (lane & segment) | (clamp & ~segment);
  const std::uint32_t least = lane & segment;
  std::int64_t j = 0;
  bool inside = false;
  if (in.info->has<"up">()) {
    j = static_cast<std::int64_t>(lane) - bval;
    inside = j >= static_cast<std::int64_t>(most);
  } else if (in.info->has<"down">()) {
    j = lane + bval;
    inside = j <= most;
  } else if (in.info->has<"bfly">()) {
    j = lane ^ bval;
    inside = j <= most;
  } else {
    j = least | (bval & ~segment);
    inside = j <= most;
  }
  return {inside ? static_cast<unsigned>(j) : lane, inside};
}

}  // namespace

Flow exec_shuffle(Exec& x, const Inst& in) {
  const Slot& members = operand(in, 4);
  if (gather(x, members) == Gather::wait) return Flow::stop;
  const Slot& dst = in.slot[in.info->start[0]];
  const Slot* inside_slot = in.info->count[0] == 2 ? &in.slot[in.info->start[0] + 1U] : nullptr;
  const Slot &a = operand(in, 1), &b = operand(in, 2), &c = operand(in, 3);
  std::array<std::uint64_t, 32> value{};
  const std::uint32_t defined_a = x.defined(a);
  std::uint32_t defined = 0, inside_bits = 0;
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
    const unsigned lane = first_lane(left);
    const ShuffleSource s = source_of(in, lane, static_cast<std::uint32_t>(x.value(b, lane)),
                                      static_cast<std::uint32_t>(x.value(c, lane)));
    value[lane] = x.value(a, s.lane);
    if (s.inside) inside_bits |= 1U << lane;
    const bool takes_part = (x.mask >> s.lane & 1) != 0;
    if (!takes_part && (x.warp->exist >> s.lane & 1) != 0) report_bad_source(x, lane, s.lane);
    if (takes_part && (defined_a >> s.lane & 1) != 0) defined |= 1U << lane;
  }
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
    const unsigned lane = first_lane(left);
    x.set(dst, lane, value[lane]);
    if (inside_slot != nullptr) x.set(*inside_slot, lane, inside_bits >> lane & 1);
  }
  if (dst.cls != Class::sink) x.defined(dst) &= ~x.mask | defined;
  return Flow::next;
}

Flow exec_vote(Exec& x, const Inst& in) {
  const Slot& members = operand(in, 2);
  if (gather(x, members) == Gather::wait) return Flow::stop;
  const Slot& dst = operand(in, 0);
  const Slot& a = operand(in, 1);
  const std::uint32_t defined = x.defined(a);
  for_each_group(x, members, [&](std::uint32_t group) {
    std::uint32_t votes = 0;
    for (std::uint32_t l = group; l != 0; l &= l - 1) {
      votes |= static_cast<std::uint32_t>(x.value(a, first_lane(l))) << first_lane(l);
    }
    std::uint64_t result = votes;
    if (in.info->has<"all">()) result = votes == group;
    if (in.info->has<"any">()) result = votes != 0;
    if (in.info->has<"uni">()) result = votes == group || votes == 0;
    for (std::uint32_t l = group; l != 0; l &= l - 1)
      x.set(dst, first_lane(l), result);
    if ((group & ~defined) != 0 && dst.cls != Class::sink) x.defined(dst) &= ~group;
  });
  return Flow::next;
}

Flow exec_match(Exec& x, const Inst& in) {
  const Slot& members = operand(in, 2);
  if (gather(x, members) == Gather::wait) return Flow::stop;
  const Slot& dst = in.slot[in.info->start[0]];
  const Slot* pred = in.info->count[0] == 2 ? &in.slot[in.info->start[0] + 1U] : nullptr;
  const Slot& a = operand(in, 1);
  const bool all = in.info->has<"all">();
  for_each_group(x, members, [&](std::uint32_t group) {
    std::array<std::uint32_t, 32> result{};
    for (std::uint32_t l = group; l != 0; l &= l - 1) {
      const std::uint64_t value = x.value(a, first_lane(l));
      std::uint32_t equal = 0;
      for (std::uint32_t k = group; k != 0; k &= k - 1) {
        if (x.value(a, first_lane(k)) == value) equal |= 1U << first_lane(k);
      }
      result[first_lane(l)] = all && equal != group ? 0 : equal;
    }
    for (std::uint32_t l = group; l != 0; l &= l - 1) {
      x.set(dst, first_lane(l), result[first_lane(l)]);
      if (pred != nullptr) x.set(*pred, first_lane(l), result[first_lane(l)] != 0);
    }
  });
  return Flow::next;
}

Flow exec_redux(Exec& x, const Inst& in) {
  const Slot& members = operand(in, 2);
  if (gather(x, members) == Gather::wait) return Flow::stop;
  const Slot& a = operand(in, 1);
  const bool is_signed_type = in.info->type == Type::s32;
  for_each_group(x, members, [&](std::uint32_t group) {
    auto result = static_cast<std::uint32_t>(x.value(a, first_lane(group)));
    for (std::uint32_t l = group & (group - 1); l != 0; l &= l - 1) {
      const auto v = static_cast<std::uint32_t>(x.value(a, first_lane(l)));
      const bool less = is_signed_type
                            ? static_cast<std::int32_t>(v) < static_cast<std::int32_t>(result)
                            : v < result;
      switch (in.info->atom) {
        case AtomOp::add:
          result += v;
          break;
        case AtomOp::min:
          result = less ? v : result;
          break;
        case AtomOp::max:
          result = less ? result : v;
          break;
        case AtomOp::and_:
          result &= v;
          break;
        case AtomOp::or_:
          result |= v;
          break;
        case AtomOp::xor_:
          result ^= v;
          break;
        case AtomOp::none:
        case AtomOp::inc:
        case AtomOp::dec:
        case AtomOp::exch:
        case AtomOp::cas:
          break;
      }
    }
    const bool defined = (group & ~x.defined(a)) == 0;
    for (std::uint32_t l = group; l != 0; l &= l - 1)
      x.set(operand(in, 0), first_lane(l), result);
    if (!defined) x.defined(operand(in, 0)) &= ~group;
  });
  return Flow::next;
}

Flow exec_elect(Exec& x, const Inst& in) {
  const Slot& members = operand(in, 1);
  if (gather(x, members) == Gather::wait) return Flow::stop;
  const Slot& d = in.slot[in.info->start[0]];
  const Slot& p = in.slot[in.info->start[0] + in.info->count[0] - 1U];
  for_each_group(x, members, [&](std::uint32_t group) {
    const unsigned leader = first_lane(group);
    for (std::uint32_t l = group; l != 0; l &= l - 1) {
      if (in.info->count[0] == 2) x.set(d, first_lane(l), leader);
      x.set(p, first_lane(l), first_lane(l) == leader);
    }
  });
  return Flow::next;
}

Flow exec_activemask(Exec& x, const Inst& in) {
  for (std::uint32_t l = x.mask; l != 0; l &= l - 1) {
    x.set(operand(in, 0), first_lane(l), x.mask);
  }
  return Flow::next;
}

}  // namespace tilewright::emu::detail
