// SPDX-License-Identifier: Apache-2.0
// Barriers, shuffles and votes.
#include "tilewright/sync.h"

#include "lang/tracer.h"

#include <string>

namespace tilewright {
namespace {

using lang::Tracer;

void require_group(const Group& group, const char* what, const Tracer& tracer, SourceLoc at) {
  int block = tracer.block[0] * tracer.block[1] * tracer.block[2];
  bool multiple = group.threads >= 0 && group.threads % 32 == 0;
  bool fits = block == 0 || group.threads <= block;
  if (multiple && fits && group.barrier >= 0 && group.barrier < 16) return;
  throw Error(ErrorKind::user,
              std::string(what) + ": a group of " + std::to_string(group.threads) +
                  " threads at barrier " + std::to_string(group.barrier) + " in a block of " +
                  std::to_string(block) +
                  "; take a multiple of 32 threads, at most the block, and barriers 0 to 15",
              at);
}

/// Warps of a named group may meet at two instructions, which bar (barrier.aligned) must not.
void barrier_instruction(const char* does, Group group, const char* what, SourceLoc at) {
  Tracer& tracer = Tracer::current(what, at);
  require_group(group, what, tracer, at);
  tracer.require_converged(what, group.threads == 0 ? Uniformity::block : Uniformity::warp, at);
  const bool aligned = group.threads == 0;
  std::vector<ptx::Operand> operands{ptx::imm(group.barrier)};
  if (group.threads > 0) operands.push_back(ptx::imm(group.threads));
  tracer.emit(std::string(aligned ? "bar" : "barrier") + does, std::move(operands), at);
}

void plain(const char* op, const char* what, SourceLoc at) {
  Tracer::current(what, at).emit(op, {}, at);
}

constexpr std::int64_t kAllLanes = 0xffffffff;

Value shuffle_word(const char* op, const Value& word, const Value& lane, int clamp, Tracer& tracer,
                   SourceLoc at) {
  ptx::RegId destination = tracer.new_reg(word.type());
  ptx::Operand source = ptx::reg(tracer.reg_of(word, at));
  ptx::Operand selector = tracer.operand(lane, at);
  tracer.emit(op, {ptx::reg(destination), source, selector, ptx::imm(clamp), ptx::imm(kAllLanes)},
              at);
  return tracer.result(word.type(), destination, Uniformity::thread);
}

Value shuffle_any(const char* op, const Arg& value, const Value& lane, int clamp,
                  const char* what) {
  SourceLoc at = value.at();
  Tracer& tracer = Tracer::current(what, at);
  tracer.require_converged(what, Uniformity::warp, at);
  Value x = value.natural();
  int width = x.type() == pred ? 0 : bits(x.type());
  if (width == 32) return shuffle_word(op, x, lane, clamp, tracer, at);
  if (width == 16) {
    Value wide = tracer.pure("cvt.u32.u16", u32, {&x}, at);
    Value moved = shuffle_word(op, wide, lane, clamp, tracer, at);
    return tracer.pure("cvt.u16.u32", x.type(), {&moved}, at);
  }
  if (width == 64) {
    ptx::RegId low = tracer.new_reg(u32);
    ptx::RegId high = tracer.new_reg(u32);
    tracer.emit("mov.b64",
                {ptx::vector({ptx::reg(low), ptx::reg(high)}), ptx::reg(tracer.reg_of(x, at))}, at);
    Value low_word = tracer.result(u32, low, x.uniformity());
    Value high_word = tracer.result(u32, high, x.uniformity());
    Value moved_low = shuffle_word(op, low_word, lane, clamp, tracer, at);
    Value moved_high = shuffle_word(op, high_word, lane, clamp, tracer, at);
    ptx::RegId joined = tracer.new_reg(x.type());
    tracer.emit("mov.b64",
                {ptx::reg(joined), ptx::vector({ptx::reg(tracer.reg_of(moved_low, at)),
                                                ptx::reg(tracer.reg_of(moved_high, at))})},
                at);
    return tracer.result(x.type(), joined, Uniformity::thread);
  }
  throw Error(ErrorKind::user,
              std::string(what) + ": not defined for " + std::string(name(x.type())) +
                  "; it takes types of 16, 32 or 64 bits",
              at);
}

void require_width(int width, const char* what, SourceLoc at) {
  if (width >= 1 && width <= 32 && (width & (width - 1)) == 0) return;
  throw Error(ErrorKind::user,
              std::string(what) + ": the width is " + std::to_string(width) +
                  "; it must be 1, 2, 4, 8, 16 or 32",
              at);
}

void require_lanes(int lanes, int most, const char* what, const char* which, SourceLoc at) {
  if (lanes >= 0 && lanes < most) return;
  throw Error(ErrorKind::user,
              std::string(what) + ": the " + which + " is " + std::to_string(lanes) +
                  "; it must be 0 to " + std::to_string(most - 1),
              at);
}

/// The c operand of shfl: segment mask in bits 8..12, clamp in bits 0..4 (PTX ISA, shfl.sync).
int segment(int width, int clamp) { return ((32 - width) << 8) | clamp; }

Value vote(const char* op, Type result, const Arg& predicate, const char* what) {
  SourceLoc at = predicate.at();
  Tracer& tracer = Tracer::current(what, at);
  tracer.require_converged(what, Uniformity::warp, at);
  Value p = predicate.as(pred, what);
  ptx::RegId destination = tracer.new_reg(result);
  tracer.emit(op, {ptx::reg(destination), ptx::reg(tracer.reg_of(p, at)), ptx::imm(kAllLanes)}, at);
  return tracer.result(result, destination, Uniformity::warp);
}

}  // namespace

Group named_barrier(int threads, SourceLoc at) {
  Tracer& tracer = Tracer::current("named_barrier", at);
  for (int id = 1; id < 16; ++id) {
    if ((tracer.used_barriers >> id & 1u) != 0) continue;
    tracer.used_barriers |= 1u << id;
    Group group{threads, id};
    require_group(group, "named_barrier", tracer, at);
    return group;
  }
  throw Error(
      ErrorKind::user,
      "named_barrier: the block's 15 named barriers are taken; reuse one whose threads have "
      "all passed",
      at);
}

void barrier(Group group, SourceLoc at) { barrier_instruction(".sync", group, "barrier", at); }

void barrier_arrive(Group group, SourceLoc at) {
  if (group.threads == 0) {
    throw Error(ErrorKind::user,
                "barrier_arrive: the group must say how many threads meet; use named_barrier()",
                at);
  }
  barrier_instruction(".arrive", group, "barrier_arrive", at);
}

void warp_barrier(std::uint32_t lanes, SourceLoc at) {
  Tracer& tracer = Tracer::current("warp_barrier", at);
  if (lanes == 0) {
    throw Error(ErrorKind::user, "warp_barrier: the mask of lanes is 0; name the lanes that meet",
                at);
  }
  if (lanes == 0xffffffffu) tracer.require_converged("warp_barrier", Uniformity::warp, at);
  tracer.emit("bar.warp.sync", {ptx::imm(lanes)}, at);
}

Value shuffle_xor(const Arg& value, int lane_mask, int width) {
  require_width(width, "shuffle_xor", value.at());
  require_lanes(lane_mask, width, "shuffle_xor", "lane mask", value.at());
  return shuffle_any("shfl.sync.bfly.b32", value, ValueAccess::constant(u32, lane_mask),
                     segment(width, 31), "shuffle_xor");
}

Value shuffle_down(const Arg& value, int delta, int width) {
  require_width(width, "shuffle_down", value.at());
  require_lanes(delta, 32, "shuffle_down", "distance", value.at());
  return shuffle_any("shfl.sync.down.b32", value, ValueAccess::constant(u32, delta),
                     segment(width, 31), "shuffle_down");
}

Value shuffle_up(const Arg& value, int delta, int width) {
  require_width(width, "shuffle_up", value.at());
  require_lanes(delta, 32, "shuffle_up", "distance", value.at());
  return shuffle_any("shfl.sync.up.b32", value, ValueAccess::constant(u32, delta),
                     segment(width, 0), "shuffle_up");
}

Value shuffle(const Arg& value, const Arg& source_lane, int width) {
  require_width(width, "shuffle", value.at());
  Value lane = source_lane.is_literal() ? source_lane.as(u32, "shuffle") : source_lane.value();
  if (bits(lane.type()) != 32 || !is_integer(lane.type())) {
    throw Error(ErrorKind::user,
                "shuffle: the source lane has type " + std::string(name(lane.type())) +
                    "; it must be s32 or u32",
                source_lane.at());
  }
  Value moved = shuffle_any("shfl.sync.idx.b32", value, lane, segment(width, 31), "shuffle");
  bool same = width == 32 && lane.uniformity() <= Uniformity::warp;
  if (same) ValueAccess::set_uniformity(moved, Uniformity::warp);
  return moved;
}

Value vote_any(const Arg& predicate) {
  return vote("vote.sync.any.pred", pred, predicate, "vote_any");
}
Value vote_all(const Arg& predicate) {
  return vote("vote.sync.all.pred", pred, predicate, "vote_all");
}
Value ballot(const Arg& predicate) {
  return vote("vote.sync.ballot.b32", u32, predicate, "ballot");
}

void cp_async_commit(SourceLoc at) { plain("cp.async.commit_group", "cp_async_commit", at); }
void cp_async_wait_all(SourceLoc at) { plain("cp.async.wait_all", "cp_async_wait_all", at); }

void cp_async_wait(int pending, SourceLoc at) {
  if (pending < 0) {
    throw Error(ErrorKind::user,
                "cp_async_wait: " + std::to_string(pending) + " groups; it must be 0 or more", at);
  }
  Tracer::current("cp_async_wait", at).emit("cp.async.wait_group", {ptx::imm(pending)}, at);
}

void fence(Scope scope, SourceLoc at) {
  static constexpr const char* kFences[] = {"fence.acq_rel.cta", "fence.acq_rel.cluster",
                                            "fence.acq_rel.gpu", "fence.acq_rel.sys"};
  plain(kFences[static_cast<int>(scope)], "fence", at);
}

void grid_dependency_wait(SourceLoc at) {
  plain("griddepcontrol.wait", "grid_dependency_wait", at);
}
void grid_dependency_launch(SourceLoc at) {
  plain("griddepcontrol.launch_dependents", "grid_dependency_launch", at);
}

}  // namespace tilewright
