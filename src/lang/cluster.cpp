// SPDX-License-Identifier: Apache-2.0
// Special registers of clusters, mapa, and the cluster barrier.
#include "tilewright/cluster.h"

#include "lang/address.h"

#include <array>
#include <string>

namespace tilewright {
namespace {

using lang::Tracer;

constexpr std::int64_t kMaxClusterBlocks = 16;  // non-portable size; CUDA Programming Guide

const std::array<int, 3>& known_cluster(Tracer& tracer) {
  return tracer.function().tuning.reqnctapercluster;
}

Value extent(Tracer& tracer, int dim, const char* register_name) {
  int known = known_cluster(tracer)[static_cast<std::size_t>(dim)];
  if (known > 0) return ValueAccess::constant(s32, known);
  return tracer.special(register_name, s32, Uniformity::grid, {1, 1, kMaxClusterBlocks});
}

Value coordinate(Tracer& tracer, int dim, const char* register_name) {
  int known = known_cluster(tracer)[static_cast<std::size_t>(dim)];
  if (known == 1) return ValueAccess::constant(s32, 0);
  std::int64_t last = (known > 0 ? known : kMaxClusterBlocks) - 1;
  return tracer.special(register_name, s32, Uniformity::block, {1, 0, last});
}

void barrier_part(const char* op, const char* what, SourceLoc at) {
  Tracer& tracer = Tracer::current(what, at);
  tracer.require_converged(what, Uniformity::warp, at);
  tracer.emit(op, {}, at);
}

Value rank_of(const Arg& rank, Tracer& tracer, SourceLoc at) {
  Value value = rank.is_literal() ? rank.as(u32, "peer") : rank.settled();
  if (bits(value.type()) != 32 || !is_integer(value.type())) {
    throw Error(
        ErrorKind::user,
        "peer: the rank has type " + std::string(name(value.type())) + "; it must be s32 or u32",
        at);
  }
  const auto& known = known_cluster(tracer);
  std::int64_t blocks = std::int64_t{known[0]} * known[1] * known[2];
  std::int64_t most = blocks > 0 ? blocks : kMaxClusterBlocks;
  if (value.is_constant() && (value.constant() < 0 || value.constant() >= most)) {
    throw Error(ErrorKind::user,
                "peer: rank " + std::to_string(value.constant()) + " in a cluster of " +
                    (blocks > 0 ? "" : "at most ") + std::to_string(most) +
                    " blocks; ranks count from 0",
                at);
  }
  return value;
}

}  // namespace

Value cluster_size(SourceLoc at) {
  Tracer& tracer = Tracer::current("cluster_size", at);
  const auto& known = known_cluster(tracer);
  if (known[0] > 0) return ValueAccess::constant(s32, std::int64_t{known[0]} * known[1] * known[2]);
  return tracer.special("%cluster_nctarank", s32, Uniformity::grid, {1, 1, kMaxClusterBlocks});
}

Index3 cluster_block_idx(SourceLoc at) {
  Tracer& tracer = Tracer::current("cluster_block_idx", at);
  return {coordinate(tracer, 0, "%cluster_ctaid.x"), coordinate(tracer, 1, "%cluster_ctaid.y"),
          coordinate(tracer, 2, "%cluster_ctaid.z")};
}

Index3 cluster_dim(SourceLoc at) {
  Tracer& tracer = Tracer::current("cluster_dim", at);
  return {extent(tracer, 0, "%cluster_nctaid.x"), extent(tracer, 1, "%cluster_nctaid.y"),
          extent(tracer, 2, "%cluster_nctaid.z")};
}

Tensor peer(const Tensor& tensor, const Arg& rank, SourceLoc at) {
  Tracer& tracer = Tracer::current("peer", at);
  if (tensor.space() != MemorySpace::shared) {
    throw Error(ErrorKind::user,
                std::string("peer: the tensor is in ") + lang::space_word(tensor.space()) +
                    " memory; it takes one in the block's own shared memory",
                at);
  }
  Value to = rank_of(rank, tracer, at);
  const Value& base = tensor.base();
  // Windows of blocks are aligned far beyond any tensor.
  Value mapped = tracer.pure("mapa.shared::cluster.u32", u32, {&base, &to}, at,
                             {base.facts().divisor, 0, std::int64_t{0xffffffff}});
  return {tensor.type(), MemorySpace::cluster, mapped, tensor.layout(), tensor.alignment_bytes()};
}

void cluster_arrive(SourceLoc at) {
  barrier_part("barrier.cluster.arrive.release.aligned", "cluster_arrive", at);
}
void cluster_arrive_relaxed(SourceLoc at) {
  barrier_part("barrier.cluster.arrive.relaxed.aligned", "cluster_arrive_relaxed", at);
}
void cluster_wait(SourceLoc at) {
  barrier_part("barrier.cluster.wait.acquire.aligned", "cluster_wait", at);
}
void cluster_barrier(SourceLoc at) {
  barrier_part("barrier.cluster.arrive.release.aligned", "cluster_barrier", at);
  barrier_part("barrier.cluster.wait.acquire.aligned", "cluster_barrier", at);
}

}  // namespace tilewright
