// SPDX-License-Identifier: Apache-2.0
// Small programs, each `(const int* x, int* out)`: what nvcc makes of the usual idioms. Compiled by `nvcc -ptx -arch=sm_90a -std=c++17`.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cub/block/block_radix_sort.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda_fp8.h>
namespace cg = cooperative_groups;
#define KERNEL(name) extern "C" __global__ void name(const int* x, int* out)

KERNEL(histogram) {
  __shared__ int bins[64];
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = 0; i < 4; ++i) atomicAdd(&bins[x[blockIdx.x * 256 + i * 64 + threadIdx.x] & 63], 1);
  __syncthreads();
  atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

// A scan whose blocks wait for the one before: flags in out[512..], a ticket in out[1024].
KERNEL(chained_scan) {
  __shared__ int sums[64];
  __shared__ int before, ticket;
  if (threadIdx.x == 0) ticket = atomicAdd(&out[1024], 1);
  __syncthreads();
  const int b = ticket, at = b * 64 + threadIdx.x;
  sums[threadIdx.x] = x[at];
  __syncthreads();
  for (int d = 1; d < 64; d *= 2) {
    const int v = threadIdx.x >= d ? sums[threadIdx.x - d] : 0;
    __syncthreads();
    sums[threadIdx.x] += v;
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    before = 0;
    if (b > 0) {
      cuda::atomic_ref<int, cuda::thread_scope_device> flag(out[512 + b - 1]);
      while (flag.load(cuda::memory_order_acquire) == 0) {}
      before = out[768 + b - 1];
    }
    out[768 + b] = before + sums[63];
    cuda::atomic_ref<int, cuda::thread_scope_device> flag(out[512 + b]);
    flag.store(1, cuda::memory_order_release);
  }
  __syncthreads();
  out[at] = before + sums[threadIdx.x];
}

KERNEL(sort_local_array) {
  int a[16];
  for (int i = 0; i < 16; ++i) a[i] = x[(threadIdx.x + i) & 31];
  for (int i = 0; i < 15; ++i)
    for (int j = 0; j < 15 - i; ++j)
      if (a[j] > a[j + 1]) { const int t = a[j]; a[j] = a[j + 1]; a[j + 1] = t; }
  out[threadIdx.x] = a[x[threadIdx.x] & 15];
}

struct Shape { __device__ virtual int area(int n) const = 0; };
struct Square : Shape { __device__ int area(int n) const override { return n * n; } };
struct Strip : Shape { int width; __device__ Strip(int w) : width(w) {} __device__ int area(int n) const override { return n * width; } };
KERNEL(virtual_call) {
  Square square;
  Strip strip(5);
  const Shape* shape = (threadIdx.x & 1) != 0 ? static_cast<const Shape*>(&square) : &strip;
  out[threadIdx.x] = shape->area(threadIdx.x);
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
KERNEL(recursion) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }

KERNEL(heap) {
  int* p = static_cast<int*>(malloc(8 * sizeof(int)));
  for (int i = 0; i < 8; ++i) p[i] = i * threadIdx.x;
  int sum = 0;
  for (int i = 0; i < 8; ++i) sum += p[i];
  free(p);
  out[threadIdx.x] = sum;
}

KERNEL(groups) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  const int v = x[threadIdx.x];
  int sum = cg::reduce(tile, v, cg::plus<int>());
  if ((v & 1) != 0) {
    auto odd = cg::coalesced_threads();
    sum += 1000 * odd.size();
  }
  out[threadIdx.x] = sum;
}

KERNEL(grid_sync) {
  auto grid = cg::this_grid();
  const int i = grid.thread_rank();
  for (int step = 0; step < 3; ++step) {
    const int v = step == 0 ? x[(i + 1) % 128] : out[(i + 1) % 128];
    grid.sync();
    out[i] = v + 1;
    grid.sync();
  }
}

KERNEL(radix_sort) {
  using Sort = cub::BlockRadixSort<int, 64, 4>;
  __shared__ Sort::TempStorage storage;
  int v[4];
  for (int i = 0; i < 4; ++i) v[i] = x[threadIdx.x * 4 + i];
  Sort(storage).Sort(v);
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = v[i];
}

KERNEL(cuda_barrier) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ int s[64];
  if (threadIdx.x == 0) init(&bar, 64);
  __syncthreads();
  for (int i = 0; i < 4; ++i) {
    s[threadIdx.x] = x[i * 64 + threadIdx.x];
    bar.arrive_and_wait();
    out[i * 64 + threadIdx.x] = s[63 - threadIdx.x];
    bar.arrive_and_wait();
  }
}

KERNEL(fp8_round_trip) { out[threadIdx.x] = static_cast<int>(static_cast<float>(__nv_fp8_e4m3(static_cast<float>(x[threadIdx.x] & 15)))); }

KERNEL(distributed_shared) {
  __shared__ int s[32];
  auto cluster = cg::this_cluster();
  s[threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
  cluster.sync();
  out[blockIdx.x * 32 + threadIdx.x] = cluster.map_shared_rank(s, (cluster.block_rank() + 1) % 4)[threadIdx.x];
  cluster.sync();
}

KERNEL(bulk_ring) {
  __shared__ alignas(128) int s[2][128];
  __shared__ unsigned long long bars[2];
  const unsigned first = __cvta_generic_to_shared(bars);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; mbarrier.init.shared::cta.b64 [%1], 1;" ::"r"(first), "r"(first + 8));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  for (int i = 0; i < 4; ++i) {
    const unsigned bar = first + 8 * (i & 1), stage = __cvta_generic_to_shared(s[i & 1]);
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" ::"r"(bar));
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];" ::"r"(stage), "l"(x + i * 128), "r"(bar) : "memory");
    }
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra W; }" ::"r"(bar), "r"(i >> 1) : "memory");
    s[i & 1][threadIdx.x] += i;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;" ::"l"(out + i * 128), "r"(stage) : "memory");
      asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
  }
  if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

KERNEL(remote_store) {
  __shared__ alignas(16) int s[4];
  __shared__ unsigned long long bar;
  const unsigned b = __cvta_generic_to_shared(&bar), at = __cvta_generic_to_shared(s);
  auto cluster = cg::this_cluster();
  const unsigned rank = cluster.block_rank();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(b));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;" ::"r"(b));
  }
  cluster.sync();
  if (threadIdx.x == 0) {
    unsigned there, bar_there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank ^ 1));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(bar_there) : "r"(b), "r"(rank ^ 1));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(there), "r"(x[rank]), "r"(1), "r"(2), "r"(3), "r"(bar_there) : "memory");
  }
  asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra W; }" ::"r"(b) : "memory");
  if (threadIdx.x < 4) out[blockIdx.x * 4 + threadIdx.x] = s[threadIdx.x];
}
