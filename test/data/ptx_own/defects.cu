// SPDX-License-Identifier: Apache-2.0
// Pairs of kernels, one right and one with a planted defect: NAME_clean and NAME_bad (arguments: in, out, n).
// nvcc -ptx -O3 -std=c++17 -arch=sm_90a -o defects_sm_90a.ptx defects.cu
#include <cooperative_groups.h>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

#define PAIR(name)                                                                      \
  extern "C" __global__ void name##_clean(int* in, int* out, int n) { name<false>(in, out, n); } \
  extern "C" __global__ void name##_bad(int* in, int* out, int n) { name<true>(in, out, n); }

__device__ void named_sync(int id, int threads) { asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
__device__ void named_arrive(int id, int threads) { asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

// One warp fills two stages, another uses them. Bad: the producer does not wait until a stage is free.
template <bool Bad>
__device__ void warp_specialised(int* in, int* out, int n) {
  __shared__ int stage[2][32];
  const int lane = threadIdx.x % 32, rounds = n / 32;
  if (threadIdx.x < 32) {
    for (int i = 0; i < rounds; ++i) {
      if (!Bad && i >= 2) named_sync(3 + i % 2, 64);
      stage[i % 2][lane] = in[i * 32 + lane];
      named_arrive(1 + i % 2, 64);
    }
  } else {
    int sum = 0;
    for (int i = 0; i < rounds; ++i) {
      named_sync(1 + i % 2, 64);
      sum += stage[i % 2][31 - lane];
      if (!Bad && i + 2 < rounds) named_arrive(3 + i % 2, 64);
    }
    out[lane] = sum;
  }
}
PAIR(warp_specialised)

// A ring of cp.async stages. Bad: one group too many is left in flight.
template <bool Bad>
__device__ void copy_ring(int* in, int* out, int n) {
  __shared__ int ring[3][64];
  const int t = threadIdx.x, rounds = n / 64;
  auto load = [&](int i) {
    if (i < rounds) __pipeline_memcpy_async(&ring[i % 3][t], in + i * 64 + t, 4);
    __pipeline_commit();
  };
  load(0);
  load(1);
  int sum = 0;
  for (int i = 0; i < rounds; ++i) {
    __pipeline_wait_prior(Bad ? 2 : 1);
    __syncthreads();
    sum += ring[i % 3][63 - t];
    load(i + 2);
  }
  out[t] = sum;
}
PAIR(copy_ring)

// Bad: a thread's own wait says nothing about the copies of other threads.
template <bool Bad>
__device__ void copy_exchange(int* in, int* out, int) {
  __shared__ int tile[64];
  __pipeline_memcpy_async(&tile[threadIdx.x], in + threadIdx.x, 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  if (!Bad) __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}
PAIR(copy_exchange)

// Sums in groups of 8 lanes through shared memory. Bad: no synchronisation of the group.
template <bool Bad>
__device__ void tile_sum(int* in, int* out, int) {
  __shared__ int part[64];
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  part[threadIdx.x] = in[threadIdx.x];
  if (!Bad) tile.sync();
  int sum = 0;
  for (int i = 0; i < 8; ++i) sum += part[threadIdx.x / 8 * 8 + i];
  out[threadIdx.x] = sum;
}
PAIR(tile_sum)

// A block reads its neighbour's shared memory. Bad: it may do so before it was written.
template <bool Bad>
__device__ void neighbour(int* in, int* out, int) {
  __shared__ int mine[64];
  cg::cluster_group cluster = cg::this_cluster();
  mine[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
  if (!Bad) cluster.sync();
  const int* theirs = cluster.map_shared_rank(mine, cluster.block_rank() ^ 1);
  out[blockIdx.x * 64 + threadIdx.x] = theirs[threadIdx.x];
  cluster.sync();
}
extern "C" __global__ void __cluster_dims__(2) neighbour_clean(int* in, int* out, int n) { neighbour<false>(in, out, n); }
extern "C" __global__ void __cluster_dims__(2) neighbour_bad(int* in, int* out, int n) { neighbour<true>(in, out, n); }

// A lock by atomicCAS around an ordinary counter. Bad: no fence before the lock is given back.
template <bool Bad>
__device__ void lock(int* in, int* out, int) {
  if (threadIdx.x % 32 != 0) return;
  while (atomicCAS(in, 0, 1) != 0) {
  }
  __threadfence();
  *out = *out + 1;
  if (!Bad) __threadfence();
  atomicExch(in, 0);
}
PAIR(lock)

// One block publishes data and a flag, another waits for the flag. Bad: no fence between the two.
template <bool Bad>
__device__ void publish(int* in, int* out, int) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    out[1] = 7;
    if (!Bad) __threadfence();
    atomicExch(in, 1);
  } else {
    while (atomicAdd(in, 0) == 0) {
    }
    __threadfence();
    out[0] = out[1];
  }
}
PAIR(publish)

// The last block to finish adds up what all wrote. Bad: no fence before the count.
template <bool Bad>
__device__ void last_block(int* in, int* out, int) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    out[1 + blockIdx.x] = static_cast<int>(blockIdx.x);
    if (!Bad) __threadfence();
    last = atomicAdd(in, 1) == static_cast<int>(gridDim.x) - 1;
    if (last) __threadfence();
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    int sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += out[1 + i];
    out[0] = sum;
  }
}
PAIR(last_block)

// Counts by shared atomics, read afterwards. Bad: no barrier before the reading.
template <bool Bad>
__device__ void histogram(int* in, int* out, int) {
  __shared__ int bins[8];
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&bins[in[threadIdx.x] & 7], 1);
  if (!Bad) __syncthreads();
  if (threadIdx.x < 8) out[threadIdx.x] = bins[threadIdx.x];
}
PAIR(histogram)

// Bad: a shuffle names all lanes where half of them are elsewhere.
template <bool Bad>
__device__ void half_shuffle(int* in, int* out, int n) {
  int v = in[threadIdx.x];
  if (threadIdx.x % 32 < 16) {
    v = __shfl_xor_sync(Bad ? 0xffffffffu : 0xffffu, v, 8);
  } else if (n > 0) {
    v = -v;
  }
  out[threadIdx.x] = v;
}
PAIR(half_shuffle)

// Bad: half a warp executes the block's barrier.
template <bool Bad>
__device__ void divergent_barrier(int* in, int* out, int) {
  __shared__ int s[64];
  s[threadIdx.x] = in[threadIdx.x];
  if (!Bad || threadIdx.x % 32 < 16) __syncthreads();
  out[threadIdx.x] = Bad ? s[threadIdx.x] : s[63 - threadIdx.x];
}
PAIR(divergent_barrier)

// Bad: two groups expect different numbers of threads at a barrier.
template <bool Bad>
__device__ void barrier_count(int* in, int* out, int) {
  __shared__ int s[64];
  s[threadIdx.x] = in[threadIdx.x];
  named_sync(1, Bad && threadIdx.x >= 32 ? 96 : 64);
  out[threadIdx.x] = s[63 - threadIdx.x];
}
PAIR(barrier_count)

// Bad: one element beyond a shared array that lies last.
template <bool Bad>
__device__ void beyond_shared(int* in, int* out, int) {
  extern __shared__ int dynamic[];
  dynamic[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = dynamic[threadIdx.x + (Bad ? 1 : 0)];
}
PAIR(beyond_shared)

// Bad: a vector load from an address that is no multiple of its size.
template <bool Bad>
__device__ void vector_load(int* in, int* out, int n) {
  const int4 v = *reinterpret_cast<const int4*>(in + (Bad ? 1 : 0) + 4 * (n & 1));
  out[threadIdx.x] = v.x + v.y + v.z + v.w;
}
PAIR(vector_load)

// Bad: memory of the device's heap is read after it was given back.
template <bool Bad>
__device__ void heap(int* in, int* out, int) {
  auto* p = static_cast<volatile int*>(malloc(64));
  p[3] = in[threadIdx.x];
  int v = 0;
  if (!Bad) v = p[3];
  free(const_cast<int*>(p));
  if (Bad) v = p[3];
  out[threadIdx.x] = v;
}
PAIR(heap)

// Bad: neighbouring blocks write one element.
template <bool Bad>
__device__ void overlap(int* in, int* out, int) {
  const unsigned at = blockIdx.x * (Bad ? 31 : 32) + threadIdx.x;
  out[at] = in[at] + static_cast<int>(blockIdx.x);
}
PAIR(overlap)

// The last steps of a sum within one warp. Bad: they rely on lockstep.
template <bool Bad>
__device__ void warp_sum(int* in, int* out, int) {
  __shared__ int s[64];
  s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 32) {
    for (int step = 32; step > 0; step /= 2) {
      const int v = s[threadIdx.x] + s[threadIdx.x + step];
      if (!Bad) __syncwarp();
      s[threadIdx.x] = v;
      if (!Bad) __syncwarp();
    }
    if (threadIdx.x == 0) out[0] = s[0];
  }
}
PAIR(warp_sum)

// A tile is used and filled anew in a loop. Bad: it is overwritten while some still read.
template <bool Bad>
__device__ void reused_tile(int* in, int* out, int n) {
  __shared__ int tile[64];
  int sum = 0;
  for (int i = 0; i < n / 64; ++i) {
    tile[threadIdx.x] = in[i * 64 + threadIdx.x];
    __syncthreads();
    sum += tile[63 - threadIdx.x];
    if (!Bad) __syncthreads();
  }
  out[threadIdx.x] = sum;
}
PAIR(reused_tile)

// Bad: half of the buffer that is read was never written.
template <bool Bad>
__device__ void half_written(int* in, int* out, int) {
  __shared__ int s[64];
  if (!Bad || threadIdx.x < 32) s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = s[63 - threadIdx.x];
}
PAIR(half_written)

__device__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ void wait_parity(unsigned barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred p;\nagain: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// A bulk copy into shared memory behind an mbarrier, twice. Bad: the second wait is for the first phase.
template <bool Bad>
__device__ void bulk_phases(int* in, int* out, int) {
  __shared__ alignas(16) int tile[64];
  __shared__ alignas(8) unsigned long long barrier;
  const unsigned b = shared_address(&barrier);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < 2; ++i) {
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(b) : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(
                       shared_address(tile)),
                   "l"(in + 64 * i), "r"(b)
                   : "memory");
    }
    wait_parity(b, Bad ? 0 : i);
    sum += tile[63 - threadIdx.x];
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}
PAIR(bulk_phases)

// Shared memory goes out by a bulk copy. Bad: the copy may not see what was just stored.
template <bool Bad>
__device__ void bulk_store(int* in, int* out, int) {
  __shared__ alignas(16) int tile[64];
  tile[threadIdx.x] = in[threadIdx.x] + 1;
  if (!Bad) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(out), "r"(shared_address(tile)) : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
  }
}
PAIR(bulk_store)

// Release and acquire between blocks. Bad: of a scope that ends at the block.
template <bool Bad>
__device__ void scopes(int* in, int* out, int) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    out[1] = 5;
    if (Bad) {
      asm volatile("st.release.cta.global.u32 [%0], 1;" ::"l"(in) : "memory");
    } else {
      asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(in) : "memory");
    }
  } else {
    int seen = 0;
    while (seen == 0) {
      if (Bad) {
        asm volatile("ld.acquire.cta.global.u32 %0, [%1];" : "=r"(seen) : "l"(in) : "memory");
      } else {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(in) : "memory");
      }
    }
    out[0] = out[1];
  }
}
PAIR(scopes)
