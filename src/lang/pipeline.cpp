// SPDX-License-Identifier: Apache-2.0
// Stage counters, the mbarriers of a bulk pipeline, and the register budgets of roles.
#include "tilewright/pipeline.h"

#include "lang/tracer.h"
#include "tilewright/cluster.h"
#include "tilewright/ordered.h"

#include <algorithm>
#include <string>

namespace tilewright {

using lang::Tracer;

StageCursor::StageCursor(int stages, int first, SourceLoc at)
    : stages_(stages), at_(at), stage_(s32, Arg(first, at)), parity_(u32, Arg(0, at)) {}

void StageCursor::advance() {
  Value next = Arg(stage_, at_) + Arg(1, at_);
  Value wraps = Arg(next, at_) == Arg(stages_, at_);
  Value flipped = Arg(parity_, at_) ^ Arg(1, at_);
  parity_ = select(Arg(wraps, at_), Arg(flipped, at_), Arg(parity_, at_));
  stage_ = select(Arg(wraps, at_), Arg(0, at_), Arg(next, at_));
}

namespace detail {

Value pipeline_steps(const char* what, int stages, const Arg& n) {
  SourceLoc at = n.at();
  Tracer::current(what, at);
  if (stages < 2) {
    throw Error(ErrorKind::user,
                std::string(what) + ": " + std::to_string(stages) +
                    " stages; with fewer than 2 nothing overlaps",
                at);
  }
  return n.settled();
}

namespace {

/// Registers a thread begins with, as ptxas derives them; 0 if it cannot.
int registers_at_entry(Tracer& tracer) {
  constexpr int kRegistersPerSm = 65'536;  // since sm_70; CUDA Programming Guide
  constexpr int kMaxRegisters = 255;
  const ptx::Tuning& tuning = tracer.function().tuning;
  if (tuning.maxnreg > 0) return tuning.maxnreg;
  int threads = tracer.block[0] * tracer.block[1] * tracer.block[2];
  if (tuning.minnctapersm == 0) return 0;
  return std::min(kMaxRegisters, kRegistersPerSm / (threads * tuning.minnctapersm)) / 8 * 8;
}

}  // namespace

void check_roles(const RoleSize* sizes, int count) {
  SourceLoc at = sizes[0].at;
  Tracer& tracer = Tracer::current("roles", at);
  int block = block_threads(at) / 32;
  int warps = 0;
  int wanted = 0;
  int entry = registers_at_entry(tracer);
  for (int i = 0; i < count; ++i) {
    const RoleSize& size = sizes[i];
    at = size.at;
    if (size.warps < 1 || (size.registers > 0 && (size.warps % 4 != 0 || warps % 4 != 0))) {
      throw Error(ErrorKind::user,
                  "roles: role " + std::to_string(i) + " has " + std::to_string(size.warps) +
                      " warps from warp " + std::to_string(warps) +
                      " on; it takes at least 1, and whole warpgroups of 4 where registers are set",
                  at);
    }
    warps += size.warps;
    wanted += size.warps * (size.registers > 0 ? size.registers : entry);
  }
  if (warps != block) {
    throw Error(ErrorKind::user,
                "roles: they have " + std::to_string(warps) + " warps and the block " +
                    std::to_string(block) + "; every warp needs a role",
                at);
  }
  if (entry > 0 && wanted > entry * block) {
    throw Error(ErrorKind::user,
                "roles: they ask for " + std::to_string(wanted * 32) +
                    " registers, and the block begins with " + std::to_string(entry * block * 32) +
                    "; the increases would wait for ever: lower some",
                at);
  }
}

void begin_role(int registers, SourceLoc at) {
  Tracer& tracer = Tracer::current("roles", at);
  tracer.role_fragments = tracer.fragments;
  if (registers == 0) return;
  int entry = registers_at_entry(tracer);
  if (registers == entry) return;
  if (registers > entry) return increase_registers(registers, at);
  decrease_registers(registers, at);
}

void end_roles(SourceLoc at) {
  Tracer& tracer = Tracer::current("roles", at);
  tracer.role_fragments = tracer.fragments;
}

}  // namespace detail

namespace {

int checked_stages(int stages, int producer_threads, int consumer_warps, SourceLoc at) {
  if (stages >= 1 && producer_threads >= 1 && consumer_warps >= 1) return stages;
  throw Error(ErrorKind::user,
              "BulkPipeline: " + std::to_string(stages) + " stages, " +
                  std::to_string(producer_threads) + " producer threads and " +
                  std::to_string(consumer_warps) + " consumer warps; take at least 1 of each",
              at);
}

void require_cluster(int blocks, SourceLoc at) {
  Tracer& tracer = Tracer::current("BulkPipeline", at);
  const auto& known = tracer.function().tuning.reqnctapercluster;
  int has = known[0] > 0 ? known[0] * known[1] * known[2] : 1;
  if (blocks == has || (blocks == 1 && has > 1)) return;
  throw Error(ErrorKind::user,
              "BulkPipeline: for clusters of " + std::to_string(blocks) +
                  " blocks; TraceOptions::cluster has " + std::to_string(has),
              at);
}

}  // namespace

BulkPipeline::BulkPipeline(int stages, int consumer_warps, int cluster_blocks, SourceLoc at)
    : BulkPipeline(stages, 1, consumer_warps, cluster_blocks, at) {}

BulkPipeline::BulkPipeline(int stages, int producer_threads, int consumer_warps, int cluster_blocks,
                           SourceLoc at)
    : stages_(checked_stages(stages, producer_threads, consumer_warps, at)),
      cluster_blocks_(cluster_blocks),
      full_(stages, at),
      empty_(stages, at) {
  require_cluster(cluster_blocks, at);
  if_(Arg(linear_thread_idx(at), at) == Arg(0, at), [&] {
    full_.init(producer_threads, at);
    empty_.init(consumer_warps * cluster_blocks, at);
    // The barrier below orders this for all users; with it, fence_mbarrier_init() adds nothing.
  });
  if (cluster_blocks > 1) {
    cluster_barrier(at);
  } else {
    barrier({}, at);
  }
}

Mbarrier BulkPipeline::acquire(const StageCursor& cursor, SourceLoc at) const {
  Value stage = cursor.stage();
  // The phase before the first counts as complete: new stages are empty.
  empty_.at(stage, at).wait(Arg(cursor.parity(), at) ^ Arg(1, at));
  return full_.at(stage, at);
}

void BulkPipeline::wait_full(const StageCursor& cursor, SourceLoc at) const {
  full_.at(cursor.stage(), at).wait(Arg(cursor.parity(), at));
}

void BulkPipeline::release(const StageCursor& cursor, SourceLoc at) const {
  Mbarrier empty = empty_.at(cursor.stage(), at);
  warp_barrier(0xffffffffu, at);
  Value lane = lane_idx(at);
  if (cluster_blocks_ == 1) {
    if_(Arg(lane, at) == Arg(0, at), [&] { empty.arrive(at); });
    return;
  }
  // Each lane tells one of the blocks, whose copies may write here.
  if_(Arg(lane, at) < Arg(cluster_blocks_, at),
      [&] { empty.peer(Arg(lane, at), at).arrive_after_reads(at); });
}

}  // namespace tilewright
