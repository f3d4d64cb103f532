// SPDX-License-Identifier: Apache-2.0
// Branches, calls, returns, exits, traps, and spinning loops that are put to sleep.
#include "emu/access.h"
#include "emu/builtins.h"
#include "emu/decode.h"
#include "emu/handlers.h"
#include "emu/local.h"
#include "emu/order.h"
#include "emu/schedule.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace tilewright::emu::detail {

namespace {

constexpr std::uint32_t kMaxDepth = 512;
constexpr std::uint32_t kNotSpinning = 0xffffffff;
constexpr std::size_t kMaxLocalRows = kMostLocalBytes / 4;

/// Four chains at once: one alone would wait for each multiplication.
std::uint64_t frame_hash(const Exec& x) {
  const Frame& frame = x.warp->frames[x.split->frame];
  const FunctionCode& fc = x.grid->code->functions[frame.function];
  const auto* words = reinterpret_cast<const std::uint64_t*>(x.frame);
  constexpr std::uint64_t kOdd = 0xff51afd7ed558ccdULL;
  std::array<std::uint64_t, 4> h{kOdd, kOdd << 1, kOdd << 2, kOdd << 3};
  for (std::uint32_t i = 0; i < fc.frame_bytes / 8; i += 4) {  // frames have multiples of 128 bytes
    for (std::uint32_t j = 0; j < 4; ++j) {
      h[j] = (h[j] ^ words[i + j]) * kOdd;
      h[j] ^= h[j] >> 32;
    }
  }
  return ((h[0] * kOdd ^ h[1]) * kOdd ^ h[2]) * kOdd ^ h[3];
}

/// A loop whose registers come back unchanged, with memory unchanged, cannot end by itself. While
/// registers change, a loop is looked at again only much later: hashing costs.
bool spins(Exec& x) {
  Split& s = *x.split;
  const std::uint64_t hash = frame_hash(x);
  const bool looked = s.spin_pc == x.pc;
  const bool same = looked && s.spin_hash == hash;
  if (same && s.seen_version == x.run->version) return true;
  s.spin_pc = looked && !same && !s.polled ? kNotSpinning : x.pc;
  s.spin_hash = hash;
  s.seen_version = x.run->version;
  return false;
}

Flow jump(Exec& x, std::uint32_t target, bool backward) {
  Split& s = *x.split;
  s.pc = target;
  if (!backward) return Flow::jump;
  ++s.branches;
  if (s.looked_at != 0) {  // the loop that goes on may wait for that word
    watch(x, s.looked_at);
    s.looked_at = 0;
  }
  if ((s.branches & 127) == 0 || s.spin_pc == x.pc || s.polled) {
    const bool spinning = spins(x);
    s.polled = false;
    if (spinning) {
      s.wait = Wait::memory;
      x.run->spinning.push_back(x.warp);
      return Flow::stop;
    }
  }
  // Splits of a warp take turns, so that one that waits for another does not keep it from running.
  return (s.branches & 255) == 0 && x.warp->splits.size() > 1 ? Flow::stop : Flow::jump;
}

}  // namespace

Flow exec_branch(Exec& x, const Inst& in) {
  if (x.mask == x.split->mask) return jump(x, in.target, in.backward);
  const std::size_t taken = divide(*x.warp, x.warp->current, x.mask);
  x.split = &x.warp->splits[x.warp->current];
  ++x.split->pc;
  Split& t = x.warp->splits[taken];
  t.pc = in.target;
  if (in.backward) ++t.branches;
  return Flow::stop;
}

Flow exec_branch_indexed(Exec& x, const Inst& in) {
  const std::uint32_t rest = x.split->mask & ~x.mask;
  std::uint32_t left = x.mask;
  while (left != 0) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const auto index = static_cast<std::size_t>(x.value(in.slot[0], lane));
    std::uint32_t same = 0;
    for (std::uint32_t l = left; l != 0; l &= l - 1) {
      const auto other = static_cast<unsigned>(std::countr_zero(l));
      if (x.value(in.slot[0], other) == index) same |= 1U << other;
    }
    left &= ~same;
    if (index >= in.info->targets.size()) {
      report(x, {.kind = Kind::illegal_instruction,
                 .lane = lane,
                 .message = "branches to entry " + std::to_string(index) + " of " +
                            std::to_string(in.info->targets.size()) + " targets",
                 .range = {},
                 .other = {}});
      stop_grid(*x.grid);
      return Flow::stop;
    }
    const std::uint32_t target = in.info->targets[index];
    if (left == 0 && rest == 0) return jump(x, target, target <= x.pc);
    const std::size_t part = divide(*x.warp, x.warp->current, same);
    x.split = &x.warp->splits[x.warp->current];
    x.warp->splits[part].pc = target;
  }
  ++x.split->pc;
  return Flow::stop;
}

namespace {

/// Copies arguments from the caller's variables and registers to the callee's parameters, or
/// results back.
void copy_argument(Exec& x, const Argument& a, std::byte* caller_frame, std::uint32_t caller_local,
                   std::uint32_t callee_at, std::uint32_t bytes, bool into_callee) {
  Exec view = x;
  view.frame = caller_frame;
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    std::vector<std::byte> data(std::max<std::size_t>(bytes, 8));
    bool defined = true;
    const std::uint64_t callee = kLocalBase + callee_at;
    const std::uint64_t caller = kLocalBase + caller_local + a.local;
    if (into_callee) {
      if (a.variable) {
        const auto count = static_cast<std::int64_t>(std::min(bytes, a.bytes));
        copy_local(x, lane, caller, callee, count);
        continue;
      }
      const std::uint64_t value = view.value(a.slot, lane);
      defined = (view.defined(a.slot) >> lane & 1) != 0;
      std::memcpy(data.data(), &value, 8);
      write_local(x, lane, callee, std::min(bytes, 8U), data.data(), defined);
    } else if (a.variable) {
      copy_local(x, lane, callee, caller, std::min(bytes, a.bytes));
    } else {
      read_local(x, lane, callee, std::min(bytes, 8U), data.data(), defined);
      std::uint64_t value = 0;
      std::memcpy(&value, data.data(), std::min(bytes, 8U));
      view.set(a.slot, lane, value);
      if (!defined) view.defined(a.slot) &= ~(1U << lane);
    }
  }
}

std::uint32_t callee_number(Exec& x, const Inst& in, std::uint32_t& lanes) {
  lanes = x.mask;
  if (in.info->function != kNoFunction) return in.info->function;
  const auto lane = static_cast<unsigned>(std::countr_zero(x.mask));
  const std::uint64_t address = x.value(in.slot[0], lane);
  lanes = 0;
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(left));
    if (x.value(in.slot[0], l) == address) lanes |= 1U << l;
  }
  return static_cast<std::uint32_t>(address - kFunctionAddress);
}

Flow bad_call(Exec& x, std::string message) {
  report(x, {.kind = Kind::illegal_instruction,
             .lane = static_cast<unsigned>(std::countr_zero(x.mask)),
             .message = std::move(message),
             .range = {},
             .other = {}});
  stop_grid(*x.grid);
  return Flow::stop;
}

}  // namespace

Flow exec_call(Exec& x, const Inst& in) {
  std::uint32_t lanes = 0;
  const std::uint32_t number = callee_number(x, in, lanes);
  if (number >= kFree) return call_builtin(x, in, number);
  const auto& functions = x.grid->code->functions;
  if (number >= functions.size()) return bad_call(x, "calls an address that is no function");
  const FunctionCode& fc = functions[number];
  const Frame caller = x.warp->frames[x.split->frame];
  if (caller.depth >= kMaxDepth || x.warp->local.size() > kMaxLocalRows) {
    report(x, {.kind = Kind::limit,
               .lane = static_cast<unsigned>(std::countr_zero(x.mask)),
               .message = "overflows the stack: " + std::to_string(caller.depth) + " calls deep",
               .range = {},
               .other = {}});
    stop_grid(*x.grid);
    return Flow::stop;
  }
  if (lanes != x.split->mask) {  // an indirect call to several functions, or a guarded one
    const std::uint32_t again = x.mask & ~lanes;
    const std::uint32_t skip = x.split->mask & ~x.mask;
    if (again != 0) divide(*x.warp, x.warp->current, again);
    if (skip != 0) {
      const std::size_t part = divide(*x.warp, x.warp->current, skip);
      ++x.warp->splits[part].pc;
    }
    x.split = &x.warp->splits[x.warp->current];
    x.mask = lanes;
  }
  const std::uint32_t frame = enter_frame(*x.warp, x.split->frame, x.pc + 1, number, in.info);
  enter_function(*x.warp, frame, x.mask);
  std::byte* caller_frame = x.warp->stack.data() + caller.base;
  const Frame& callee = x.warp->frames[frame];
  const auto& params = fc.source->params;
  for (std::size_t i = 0; i < std::min(params.size(), in.info->arguments.size()); ++i) {
    copy_argument(x, in.info->arguments[i], caller_frame, caller.local,
                  callee.local + fc.param_offsets[i],
                  static_cast<std::uint32_t>(ptx::size_bytes(params[i])), true);
  }
  x.split->frame = frame;
  x.split->pc = fc.entry_pc;
  x.frame = x.warp->stack.data() + callee.base;
  return x.warp->splits.size() > 1 ? Flow::stop : Flow::jump;
}

Flow exec_ret(Exec& x, const Inst& in) {
  static_cast<void>(in);
  const Frame frame = x.warp->frames[x.split->frame];
  if (frame.parent == kNoFrame) return exit_lanes(x, x.mask);
  if (x.mask != x.split->mask) {
    const std::size_t part = divide(*x.warp, x.warp->current, x.split->mask & ~x.mask);
    ++x.warp->splits[part].pc;
    x.split = &x.warp->splits[x.warp->current];
  }
  const FunctionCode& fc = x.grid->code->functions[frame.function];
  const Frame& caller = x.warp->frames[frame.parent];
  const auto& returns = fc.source->returns;
  for (std::size_t i = 0; i < std::min(returns.size(), frame.call->results.size()); ++i) {
    copy_argument(x, frame.call->results[i], x.warp->stack.data() + caller.base, caller.local,
                  frame.local + fc.return_offsets[i],
                  static_cast<std::uint32_t>(ptx::size_bytes(returns[i])), false);
  }
  x.split->frame = frame.parent;
  x.split->pc = frame.return_pc;
  x.frame = x.warp->stack.data() + caller.base;
  return x.warp->splits.size() > 1 ? Flow::stop : Flow::jump;
}

Flow exec_exit(Exec& x, const Inst&) { return exit_lanes(x, x.mask); }

Flow exec_trap(Exec& x, const Inst&) {
  report(x, {.kind = Kind::illegal_instruction,
             .lane = static_cast<unsigned>(std::countr_zero(x.mask)),
             .message = "traps: the kernel ended itself",
             .range = {},
             .other = {}});
  stop_grid(*x.grid);
  return Flow::stop;
}

Flow exec_unsupported(Exec& x, const Inst& in) {
  static_cast<void>(in);
  report(x, {.kind = Kind::illegal_instruction,
             .lane = static_cast<unsigned>(std::countr_zero(x.mask)),
             .message = "executes an instruction that the emulator does not support",
             .range = {},
             .other = {}});
  stop_grid(*x.grid);
  return Flow::stop;
}

Flow exec_nothing(Exec&, const Inst&) { return Flow::next; }

/// Others run first, and clocks go on.
Flow exec_nanosleep(Exec& x, const Inst& in) {
  const auto lane = static_cast<unsigned>(std::countr_zero(x.mask));
  x.run->clock_reads += x.value(in.slot[0], lane) & 0xfffff;
  ++x.split->pc;
  ++x.split->branches;
  return Flow::stop;
}

}  // namespace tilewright::emu::detail
