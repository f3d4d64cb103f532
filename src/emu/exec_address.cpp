// SPDX-License-Identifier: Apache-2.0
// Addresses: cvta, isspacep, mapa, getctarank, and the stack instructions.
#include "emu/access.h"
#include "emu/handlers.h"

#include <bit>

namespace tilewright::emu::detail {

namespace {

std::uint64_t window_of(Space space) {
  switch (space) {
    case Space::shared:
    case Space::shared_cluster:
      return kSharedWindow;
    case Space::local:
      return kLocalWindow;
    case Space::param:
      return kParamWindow;
    case Space::global:
    case Space::const_:
    case Space::generic:
      return 0;
  }
  return 0;
}

const Slot& operand(const Inst& in, int i) {
  return in.slot[in.info->start[static_cast<std::size_t>(i)]];
}

void pass_defined(Exec& x, const Slot& to, const Slot& from) {
  if (to.cls != Class::sink) x.defined(to) &= ~x.mask | x.defined(from);
}

template <class Each>
void for_each_lane(Exec& x, Each each) {
  for (std::uint32_t l = x.mask; l != 0; l &= l - 1) {
    each(static_cast<unsigned>(std::countr_zero(l)));
  }
}

}  // namespace

/// cvta adds or takes off the base of the space's window.
Flow exec_convert_address(Exec& x, const Inst& in) {
  const bool to = in.info->has<"to">();
  const std::uint64_t window = window_of(in.info->space);
  const Slot &d = operand(in, 0), &a = operand(in, 1);
  for_each_lane(x, [&](unsigned lane) {
    const std::uint64_t value = x.value(a, lane) + static_cast<std::uint64_t>(in.info->offset[1]);
    x.set(d, lane, to ? value - window : value + window);
  });
  pass_defined(x, d, a);
  return Flow::next;
}

Flow exec_is_space(Exec& x, const Inst& in) {
  const Slot &d = operand(in, 0), &a = operand(in, 1);
  const Space want = in.info->space;
  for_each_lane(x, [&](unsigned lane) {
    const std::uint64_t at = x.value(a, lane);
    Space is = space_of(at);
    bool yes = is == want;
    if (is == Space::shared) {
      const bool own = ((at & 0xffffffff) >> kRankShift) == x.block->rank;
      yes = want == Space::shared_cluster || (want == Space::shared && own);
    }
    if (is == Space::global) {
      const Allocation* allocation = x.run->memory->at_or_below(at);
      const bool constant =
          allocation != nullptr && allocation->read_only && allocation->contains(at, 1);
      yes = at >= kGlobalBase && want == (constant ? Space::const_ : Space::global);
    }
    x.set(d, lane, yes);
  });
  pass_defined(x, d, a);
  return Flow::next;
}

/// mapa: the same variable in another block of the cluster; getctarank: whose an address is.
Flow exec_map_address(Exec& x, const Inst& in) {
  const Slot &d = operand(in, 0), &a = operand(in, 1);
  const bool rank_of = in.info->opcode->row().opcode == "getctarank";
  const bool generic = in.info->space == Space::generic;
  const std::uint64_t window = generic ? kSharedWindow : 0;
  for_each_lane(x, [&](unsigned lane) {
    const std::uint64_t at =
        x.value(a, lane) + static_cast<std::uint64_t>(in.info->offset[1]) - window;
    if (rank_of) {
      x.set(d, lane, at >> kRankShift & 0xff);
      return;
    }
    const std::uint64_t rank = x.value(operand(in, 2), lane);
    if (rank >= x.block->cluster->blocks.size()) {
      report(x, {.kind = Kind::out_of_bounds,
                 .lane = lane,
                 .message = "asks for rank " + std::to_string(rank) + " of a cluster of " +
                            std::to_string(x.block->cluster->blocks.size()) + " blocks",
                 .range = {},
                 .other = {}});
    }
    x.set(d, lane, ((at & 0xffffff) | rank << kRankShift) + window);
  });
  pass_defined(x, d, a);
  return Flow::next;
}

/// stacksave, stackrestore, alloca: the stack grows upwards here and is shared by the lanes.
Flow exec_stack(Exec& x, const Inst& in) {
  const std::string_view op = in.info->opcode->row().opcode;
  Warp& w = *x.warp;
  Frame& frame = w.frames[x.split->frame];
  const auto first = static_cast<unsigned>(std::countr_zero(x.mask));
  const std::uint32_t bottom = frame.local + x.grid->code->functions[frame.function].local_bytes;
  const std::uint32_t top = bottom + frame.allocated;
  if (op == "stackrestore") {
    const std::uint64_t to = x.value(operand(in, 0), first) - kLocalBase;
    if (to >= bottom && to <= top) frame.allocated = static_cast<std::uint32_t>(to) - bottom;
    return Flow::next;
  }
  if (op == "alloca") {
    std::uint64_t most = 0;
    for_each_lane(x, [&](unsigned lane) { most = std::max(most, x.value(operand(in, 1), lane)); });
    const std::uint64_t room = kMostLocalBytes - std::min<std::uint64_t>(top, kMostLocalBytes);
    if (most > room) {
      report(x, {.kind = Kind::limit,
                 .lane = first,
                 .message = "asks for " + std::to_string(most) + " bytes of stack; " +
                            std::to_string(room) + " are left",
                 .range = {},
                 .other = {}});
      stop_grid(*x.grid);
      return Flow::stop;
    }
    frame.allocated += static_cast<std::uint32_t>((most + 15) / 16 * 16);
    w.local.resize(std::max<std::size_t>(w.local.size(), (bottom + frame.allocated) / 4));
    for (std::uint32_t row = top / 4; row < (bottom + frame.allocated) / 4; ++row) {
      for (auto& init : w.local[row].init)
        init &= ~x.mask;
    }
  }
  for_each_lane(x, [&](unsigned lane) { x.set(operand(in, 0), lane, kLocalBase + top); });
  return Flow::next;
}

}  // namespace tilewright::emu::detail
