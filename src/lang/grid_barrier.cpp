// SPDX-License-Identifier: Apache-2.0
// The grid barrier: every block adds 1, the first block what flips the top bit once all have come.
#include "tilewright/grid_barrier.h"

#include "lang/resident_grid.h"
#include "lang/tracer.h"
#include "tilewright/atomic.h"
#include "tilewright/control.h"
#include "tilewright/ordered.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <algorithm>
#include <string>

namespace tilewright {
namespace {

constexpr std::uint32_t kFlip = 0x80000000u;

const Element& require_word(const Element& counter, SourceLoc at) {
  const Tensor& tensor = counter.tensor();
  if (tensor.type() == u32 && tensor.space() == MemorySpace::global) return counter;
  throw Error(ErrorKind::user,
              "GridBarrier: the counter is a " + std::string(name(tensor.type())) + " in " +
                  (tensor.space() == MemorySpace::global ? "global" : "shared") +
                  " memory; it must be a u32 in global memory",
              at);
}

/// Has launches refused that are not cooperative.
void require_resident_grid(lang::Tracer& tracer) {
  std::vector<ptx::Variable>& variables = tracer.module().variables;
  ptx::Variable mark;
  mark.linkage = ptx::Linkage::visible;  // so that ptxas keeps it
  mark.name = lang::resident_grid_symbol(tracer.function().name);
  bool marked = std::any_of(variables.begin(), variables.end(),
                            [&](const ptx::Variable& v) { return v.name == mark.name; });
  if (!marked) variables.push_back(std::move(mark));
}

Value is_first(const Index3& index, SourceLoc at) {
  return (Arg(index.x, at) | Arg(index.y, at) | Arg(index.z, at)) == Arg(0, at);
}

}  // namespace

GridBarrier::GridBarrier(const Element& counter, SourceLoc at)
    : counter_(require_word(counter, at)), phase_(u32, Arg(0, at)) {
  block_threads(at);  // an error here rather than at sync()
  require_resident_grid(lang::Tracer::current("GridBarrier", at));
  // Nobody can flip the bit before this block has arrived, so that any value read until then
  // tells the phase.
  if_(Arg(is_first(thread_idx(at), at), at),
      [&] { phase_ = Arg(load_relaxed(counter_, Scope::gpu, at), at); });
}

void GridBarrier::sync(SourceLoc at) {
  barrier({}, at);
  if_(Arg(is_first(thread_idx(at), at), at), [&] {
    Index3 grid = grid_dim(at);
    Value blocks = (Arg(grid.x, at) * Arg(grid.y, at) * Arg(grid.z, at)).to(u32, at);
    Value rest = Arg(kFlip + 1u, at) - Arg(blocks, at);
    Value arrival = select(Arg(is_first(block_idx(at), at), at), Arg(rest, at), Arg(1, at));
    red_add(counter_, Arg(arrival, at), {Scope::gpu, Order::release});
    Var seen(u32, Arg(phase_, at));
    while_(
        [&] {
          seen = Arg(load_acquire(counter_, Scope::gpu, at), at);
          return ((Arg(seen, at) ^ Arg(phase_, at)) & Arg(kFlip, at)) == Arg(0, at);
        },
        [] {}, at);
    phase_ = seen;
  });
  barrier({}, at);
}

}  // namespace tilewright
