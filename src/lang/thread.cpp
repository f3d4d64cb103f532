// SPDX-License-Identifier: Apache-2.0
// How special registers are read: their types, bounds and uniformity.
#include "tilewright/thread.h"

#include "lang/tracer.h"

namespace tilewright {
namespace {

using lang::Tracer;

constexpr std::int64_t kMaxGridX =
    2'147'483'647;  // CUDA Programming Guide, technical specifications
constexpr std::int64_t kMaxGridYz = 65'535;
constexpr std::int64_t kMaxBlock[] = {1024, 1024, 64};

Value index_in_block(Tracer& tracer, int dim, const char* register_name) {
  int extent = tracer.block[static_cast<std::size_t>(dim)];
  if (extent == 1) return ValueAccess::constant(s32, 0);
  std::int64_t last = (extent > 0 ? extent : kMaxBlock[dim]) - 1;
  return tracer.special(register_name, s32, Uniformity::thread, {1, 0, last});
}

Value extent_of_block(Tracer& tracer, int dim, const char* register_name) {
  int extent = tracer.block[static_cast<std::size_t>(dim)];
  if (extent > 0) return ValueAccess::constant(s32, extent);
  return tracer.special(register_name, s32, Uniformity::grid, {1, 1, kMaxBlock[dim]});
}

Value of_grid(Tracer& tracer, const char* register_name, int dim, Uniformity uniformity,
              std::int64_t least) {
  std::int64_t most = dim == 0 ? kMaxGridX : kMaxGridYz;
  return tracer.special(register_name, s32, uniformity, {1, least, most - 1 + least});
}

Value read_clock(const char* what, const char* register_name, SourceLoc at) {
  Tracer& tracer = Tracer::current(what, at);
  ptx::RegId reg = tracer.new_reg(u64);
  tracer.emit("mov.u64", {ptx::reg(reg), ptx::special(register_name)}, at);
  return tracer.result(u64, reg, Uniformity::thread);
}

}  // namespace

Index3 thread_idx(SourceLoc at) {
  Tracer& tracer = Tracer::current("thread_idx", at);
  return {index_in_block(tracer, 0, "%tid.x"), index_in_block(tracer, 1, "%tid.y"),
          index_in_block(tracer, 2, "%tid.z")};
}

Index3 block_idx(SourceLoc at) {
  Tracer& tracer = Tracer::current("block_idx", at);
  return {of_grid(tracer, "%ctaid.x", 0, Uniformity::block, 0),
          of_grid(tracer, "%ctaid.y", 1, Uniformity::block, 0),
          of_grid(tracer, "%ctaid.z", 2, Uniformity::block, 0)};
}

Index3 block_dim(SourceLoc at) {
  Tracer& tracer = Tracer::current("block_dim", at);
  return {extent_of_block(tracer, 0, "%ntid.x"), extent_of_block(tracer, 1, "%ntid.y"),
          extent_of_block(tracer, 2, "%ntid.z")};
}

Index3 grid_dim(SourceLoc at) {
  Tracer& tracer = Tracer::current("grid_dim", at);
  return {of_grid(tracer, "%nctaid.x", 0, Uniformity::grid, 1),
          of_grid(tracer, "%nctaid.y", 1, Uniformity::grid, 1),
          of_grid(tracer, "%nctaid.z", 2, Uniformity::grid, 1)};
}

Value lane_idx(SourceLoc at) {
  return Tracer::current("lane_idx", at).special("%laneid", s32, Uniformity::thread, {1, 0, 31});
}

int block_threads(SourceLoc at) {
  const auto& block = Tracer::current("block_threads", at).block;
  if (block[0] == 0) {
    throw Error(ErrorKind::user,
                "block_threads: the trace does not know the block's shape; set TraceOptions::block",
                at);
  }
  return block[0] * block[1] * block[2];
}

Value linear_thread_idx(SourceLoc at) {
  block_threads(at);
  const auto& block = Tracer::current("linear_thread_idx", at).block;
  Index3 t = thread_idx(at);
  return Arg(t.x, at) + (Arg(t.y, at) + Arg(t.z, at) * block[1]) * block[0];
}

Value warp_idx(SourceLoc at) {
  Value warp = Arg(linear_thread_idx(at), at) / 32;
  ValueAccess::set_uniformity(warp, warp.is_constant() ? Uniformity::grid : Uniformity::warp);
  return warp;
}

Value cluster_rank(SourceLoc at) {
  return Tracer::current("cluster_rank", at)
      .special("%cluster_ctarank", s32, Uniformity::block, {1, 0, 15});
}

Value clock64(SourceLoc at) { return read_clock("clock64", "%clock64", at); }
Value global_timer(SourceLoc at) { return read_clock("global_timer", "%globaltimer", at); }

}  // namespace tilewright
