// SPDX-License-Identifier: Apache-2.0
// More small programs, each `(const int* x, int* out)`: instructions and idioms that programs.cu lacks. Compiled by `nvcc -ptx -diag-suppress 20054 -arch=sm_90a -std=c++17`.
#include <alloca.h>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cstdio>
namespace cg = cooperative_groups;
#define KERNEL(name) extern "C" __global__ void name(const int* x, int* out)

__device__ inline unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ inline void init(unsigned bar, int count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory"); }
__device__ inline void arrive(unsigned bar) { asm volatile("{.reg .b64 s; mbarrier.arrive.shared::cta.b64 s, [%0];}" ::"r"(bar) : "memory"); }
__device__ inline void wait(unsigned bar, unsigned parity) {
  asm volatile("{.reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra D; bra L; D:}" ::"r"(bar), "r"(parity) : "memory");
}

// Two warps fill a ring of four stages with generic stores, two others empty it.
KERNEL(generic_ring) {
  __shared__ int ring[4][64];
  __shared__ alignas(8) unsigned long long full[4], empty[4];
  if (threadIdx.x < 4) { init(shared_address(&full[threadIdx.x]), 64); init(shared_address(&empty[threadIdx.x]), 64); }
  __syncthreads();
  const int t = threadIdx.x & 63;
  if (threadIdx.x < 64) {
    for (int i = 0; i < 12; ++i) {
      if (i >= 4) wait(shared_address(&empty[i % 4]), (i / 4 - 1) & 1);
      ring[i % 4][t] = x[i * 64 + t] * 3;
      arrive(shared_address(&full[i % 4]));
    }
  } else {
    int sum = 0;
    for (int i = 0; i < 12; ++i) {
      wait(shared_address(&full[i % 4]), (i / 4) & 1);
      sum += ring[i % 4][63 - t];
      arrive(shared_address(&empty[i % 4]));
    }
    out[t] = sum;
  }
}

// Bulk copies in, doubled in place, and a bulk reduction out.
KERNEL(bulk_add) {
  __shared__ alignas(128) int tile[256];
  __shared__ alignas(8) unsigned long long bar;
  const unsigned b = shared_address(&bar), s = shared_address(tile);
  if (threadIdx.x == 0) { init(b, 1); asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("{.reg .b64 s; mbarrier.arrive.expect_tx.shared::cta.b64 s, [%0], 1024;}" ::"r"(b) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" ::"r"(s), "l"(x + blockIdx.x * 256), "r"(b) : "memory");
  }
  wait(b, 0);
  for (int i = threadIdx.x; i < 256; i += blockDim.x) tile[i] *= 2;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], 1024;" ::"l"(out), "r"(s) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
}

// All blocks of a cluster add into the shared memory of each other.
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_histogram(const int* x, int* out) {
  __shared__ int bins[16];
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x < 16) bins[threadIdx.x] = 0;
  cluster.sync();
  const int v = x[blockIdx.x * blockDim.x + threadIdx.x] & 63;
  atomicAdd(cluster.map_shared_rank(&bins[v & 15], v >> 4), 1);
  cluster.sync();
  if (threadIdx.x < 16) atomicAdd(&out[cluster.block_rank() * 16 + threadIdx.x], bins[threadIdx.x]);
}

KERNEL(half_maths) {
  const int t = threadIdx.x;
  const half2 a = __floats2half2_rn(t, -t), b = __float2half2_rn(0.5f);
  half2 r = __hfma2(a, b, __hmul2(a, a));
  r = __hmax2(r, __hneg2(b));
  r = __hadd2(r, __habs2(a));
  if (__hgt(__low2half(r), __high2half(r))) r = __lowhigh2highlow(r);
  const __nv_bfloat162 c = __floats2bfloat162_rn(t, 2 * t);
  const __nv_bfloat162 d = __hmin2(__hfma2_relu(c, c, __float2bfloat162_rn(-16.f)), __float2bfloat162_rn(512.f));
  out[2 * t] = static_cast<int>(2 * __low2float(r)) + 10000 * static_cast<int>(2 * __high2float(r));
  out[2 * t + 1] = static_cast<int>(__low2float(d)) + 1000 * static_cast<int>(__high2float(d));
}

KERNEL(prints) {
  if (threadIdx.x % 16 == 5) printf("t=%d x=%lld f=%.2f s=%s c=%c %%\n", threadIdx.x, 1LL << 40, x[0] * 0.5, "text", 'z');
  out[threadIdx.x] = threadIdx.x;
}

struct Pair { int key; short values[5]; };
KERNEL(local_structs) {
  Pair pairs[8];
  for (int i = 0; i < 8; ++i) {
    pairs[i].key = x[(threadIdx.x * 8 + i) & 1023];
    for (int j = 0; j < 5; ++j) pairs[i].values[j] = static_cast<short>(pairs[i].key + j);
  }
  int sum = 0;
  for (int i = 0; i < 8; ++i) sum += pairs[(x[threadIdx.x] + i) & 7].values[(threadIdx.x + i) % 5] * (i + 1);
  out[threadIdx.x] = sum;
}

__device__ __noinline__ int twice(int v) { return 2 * v; }
__device__ __noinline__ int square(int v) { return v * v; }
__device__ __noinline__ int minus(int v) { return -v; }
__device__ int (*const kTable[3])(int) = {twice, square, minus};
KERNEL(function_pointers) { out[blockIdx.x * 32 + threadIdx.x] = kTable[x[threadIdx.x] % 3](threadIdx.x) + kTable[blockIdx.x % 3](1); }

__device__ __noinline__ void quick_sort(int* a, int low, int high) {
  if (low >= high) return;
  const int pivot = a[(low + high) / 2];
  int i = low, j = high;
  while (i <= j) {
    while (a[i] < pivot) ++i;
    while (a[j] > pivot) --j;
    if (i <= j) { const int t = a[i]; a[i++] = a[j]; a[j--] = t; }
  }
  quick_sort(a, low, j);
  quick_sort(a, i, high);
}
KERNEL(recursive_sort) {
  int a[16];
  for (int i = 0; i < 16; ++i) a[i] = x[threadIdx.x * 16 + i];
  quick_sort(a, 0, 15);
  for (int i = 0; i < 16; ++i) out[threadIdx.x * 16 + i] = a[i];
}

// out[0]: f16, out[1]: bf16x2, out[2..3]: f64, then integers.
KERNEL(atomics) {
  const int v = x[threadIdx.x];
  atomicAdd(reinterpret_cast<half*>(out), __float2half(1.f));
  atomicAdd(reinterpret_cast<__nv_bfloat162*>(out + 1), __floats2bfloat162_rn(1.f, 2.f));
  atomicAdd(reinterpret_cast<double*>(out + 2), 0.25 * v);
  atomicAdd(reinterpret_cast<unsigned long long*>(out + 4), 1ULL << 33);
  atomicMax(reinterpret_cast<long long*>(out + 6), static_cast<long long>(v) << 32);
  atomicMin(&out[8], -v);
  atomicInc(reinterpret_cast<unsigned*>(&out[9]), 9);
  atomicDec(reinterpret_cast<unsigned*>(&out[10]), 9);
  atomicOr(&out[11], 1 << (threadIdx.x & 31));
  atomicXor(&out[12], v);
  atomicExch(&out[13 + threadIdx.x], v);
  unsigned short* h = reinterpret_cast<unsigned short*>(&out[200]);
  unsigned short seen = 0, old;
  do { old = seen; seen = atomicCAS(h + 1, old, static_cast<unsigned short>(old + 3)); } while (seen != old);
}

KERNEL(shuffles) {
  const int t = threadIdx.x, v = x[t];
  int r = __shfl_xor_sync(~0u, v, 5) + 2 * __shfl_up_sync(~0u, v, 3, 8) + 3 * __shfl_down_sync(~0u, v, 2, 16) + 5 * __shfl_sync(~0u, v, t + 1, 4);
  const double d = __shfl_xor_sync(~0u, v + 0.5, 16);
  const long long l = __shfl_sync(~0u, static_cast<long long>(v) << 33, 31 - t);
  out[t] = r + static_cast<int>(2 * d) + static_cast<int>(l >> 32) + __reduce_max_sync(~0u, v) + static_cast<int>(__reduce_xor_sync(~0u, static_cast<unsigned>(v)));
}

KERNEL(integer_maths) {
  const unsigned t = threadIdx.x, v = static_cast<unsigned>(x[t]) * 2654435761u;
  unsigned l;
  asm("lop3.b32 %0, %1, %2, %3, 0xe8;" : "=r"(l) : "r"(v), "r"(t * 77u), "r"(0x0ff0f00fu));
  unsigned long long w = static_cast<unsigned long long>(v) * 0x9e3779b97f4a7c15ull;
  unsigned r = l ^ __byte_perm(v, t, 0x2561) ^ __funnelshift_l(v, t, t) ^ __brev(v) ^ static_cast<unsigned>(__ffsll(static_cast<long long>(w)));
  r += static_cast<unsigned>(__dp4a(static_cast<int>(v), static_cast<int>(l), 7)) + __dp2a_lo(v, l, 3u) + __usad(v, l, 9u) + __umulhi(v, l);
  r += static_cast<unsigned>(__umul64hi(w, w)) + static_cast<unsigned>(__clzll(static_cast<long long>(w >> (t & 31)))) + static_cast<unsigned>(__popcll(w));
  r += static_cast<unsigned>(__rhadd(static_cast<int>(v), static_cast<int>(l))) + __vadd4(v, l) + __vmaxs2(v, l);
  out[t] = static_cast<int>(r);
}

KERNEL(wide_integers) {
  const int t = threadIdx.x;
  const unsigned __int128 a = (static_cast<unsigned __int128>(x[t] + 1) << 90) + x[t + 32] * 12345ull;
  const unsigned __int128 b = static_cast<unsigned __int128>(x[t + 64] + 3) << (t & 15);
  const long long c = (static_cast<long long>(x[t]) << 35) - 99999999999ll;
  out[t] = static_cast<int>(a / b) ^ static_cast<int>(a % b) ^ static_cast<int>((a * b) >> 97) ^ static_cast<int>(c / (x[t + 96] + 1)) ^ static_cast<int>(c % (x[t + 96] - 2000));
}

KERNEL(rounding_modes) {
  const float a = 1.f + x[threadIdx.x] * 1e-3f, b = 3.f + threadIdx.x * 0.7f;
  const double p = a, q = b;
  unsigned h = __float_as_uint(__fadd_rz(a, b * 1e-5f)) ^ (__float_as_uint(__fmul_ru(a, b)) * 3u) ^ (__float_as_uint(__fdiv_rd(a, b)) * 5u) ^ (__float_as_uint(__fsqrt_ru(b)) * 7u);
  h ^= static_cast<unsigned>(__double2ll_rd(__ddiv_rz(p, q) * 1e12)) ^ static_cast<unsigned>(__double_as_longlong(__dsqrt_ru(q))) ^ static_cast<unsigned>(__double_as_longlong(__fma_rd(p, q, -1e-9)));
  h ^= __float_as_uint(__double2float_ru(q / 3)) ^ static_cast<unsigned>(__float2int_ru(a * 100)) ^ __float_as_uint(rintf(b * 3));
  out[threadIdx.x] = static_cast<int>(h);
}

KERNEL(partitions) {
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto eight = cg::tiled_partition<8>(warp);
  const int v = x[threadIdx.x];
  auto same = cg::labeled_partition(warp, v % 3);
  const int scan = cg::inclusive_scan(eight, v), before = cg::exclusive_scan(eight, v);
  out[threadIdx.x] = scan + before + 100000 * static_cast<int>(same.size()) + 10000000 * static_cast<int>(same.thread_rank());
}

KERNEL(pipelined_copy) {
  __shared__ int stage[2][128];
  auto block = cg::this_thread_block();
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto pipe = cuda::make_pipeline(block, &state);
  int sum = 0;
  pipe.producer_acquire();
  cuda::memcpy_async(block, stage[0], x, sizeof(int) * 128, pipe);
  pipe.producer_commit();
  for (int i = 1; i <= 6; ++i) {
    if (i < 6) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, stage[i & 1], x + 128 * i, sizeof(int) * 128, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += i * stage[(i - 1) & 1][127 - threadIdx.x];
    pipe.consumer_release();
  }
  out[threadIdx.x] = sum;
}

__device__ unsigned blocks_done;
__device__ volatile int partial[64];
// The last block to arrive sums the others' results (CUDA's threadFenceReduction).
KERNEL(last_block) {
  __shared__ bool last;
  const int sum = __reduce_add_sync(~0u, x[blockIdx.x * 32 + threadIdx.x]);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last) {
    int v = threadIdx.x < gridDim.x ? partial[threadIdx.x] : 0;
    v = __reduce_add_sync(~0u, v);
    if (threadIdx.x == 0) out[0] = v;
  }
}

__device__ int lock;
KERNEL(spin_lock) {
  for (bool done = false; !done;) {
    if (atomicCAS(&lock, 0, 1) == 0) {
      __threadfence();
      out[0] += x[threadIdx.x];
      __threadfence();
      atomicExch(&lock, 0);
      done = true;
    }
  }
}

KERNEL(named_barriers) {
  __shared__ int a[64], b[64];
  const int t = threadIdx.x & 63;
  if (threadIdx.x < 64) {
    a[t] = x[t];
    asm volatile("bar.arrive 1, 128;" ::: "memory");
    asm volatile("bar.sync 2, 128;" ::: "memory");
    out[t] = b[63 - t];
  } else {
    asm volatile("bar.sync 1, 128;" ::: "memory");
    b[t] = a[63 - t] + 1;
    asm volatile("bar.arrive 2, 128;" ::: "memory");
  }
  const int odd = __syncthreads_count(x[threadIdx.x] & 1), any = __syncthreads_or(x[threadIdx.x] == 13), all = __syncthreads_and(x[threadIdx.x] < 2000);
  if (threadIdx.x == 127) { out[64] = odd; out[65] = any != 0; out[66] = all != 0; }
}

KERNEL(aggregated) {
  const int v = x[threadIdx.x] & 3;
  const unsigned peers = __match_any_sync(__activemask(), v);
  const int leader = __ffs(static_cast<int>(peers)) - 1, lane = threadIdx.x & 31;
  int base = 0;
  if (lane == leader) base = atomicAdd(&out[v], __popc(peers));
  base = __shfl_sync(peers, base, leader);
  if (x[threadIdx.x] % 2 == 0) {
    cg::coalesced_group active = cg::coalesced_threads();
    if (active.thread_rank() == 0) atomicAdd(&out[4], static_cast<int>(active.size()));
  }
  atomicAdd(&out[8 + base + __popc(peers & ((1u << lane) - 1))], 1);
}

__constant__ int weights[8] = {1, -2, 3, -4, 5, -6, 7, -8};
__device__ int numbers[4] = {10, 20, 30, 40};
__device__ int* pointers[2] = {numbers + 1, numbers + 3};
KERNEL(variables) {
  extern __shared__ int dynamic[];
  dynamic[threadIdx.x] = weights[x[threadIdx.x] & 7] * *pointers[threadIdx.x & 1];
  __syncwarp();
  int v = dynamic[threadIdx.x ^ 1];
  asm volatile("prefetch.global.L2 [%0];" ::"l"(x));
  v += __ldg(x + threadIdx.x) + __ldcg(x + 1) + __ldcs(x + 2) + __ldca(x + 3);
  __stcs(out + threadIdx.x, v);
  __nanosleep(20);
}

KERNEL(stack_array) {
  int* a = static_cast<int*>(alloca(sizeof(int) * (static_cast<unsigned>(x[threadIdx.x]) % 5 + 2)));
  const int n = x[threadIdx.x] % 5 + 2;
  for (int i = 0; i < n; ++i) a[i] = i * i + x[i];
  int sum = 0;
  for (int i = n; i-- > 0;) sum = 3 * sum + a[i];
  out[threadIdx.x] = sum;
}

KERNEL(many_cases) {
  int v = x[threadIdx.x];
  for (int i = 0; i < 4; ++i) {
    switch ((v + i) % 9) {
      case 0: v += 17; break;
      case 1: v ^= 0x55; break;
      case 2: v = v * 3 + 1; break;
      case 3: v = __popc(v); break;
      case 4: v -= 4; [[fallthrough]];
      case 5: v <<= 1; break;
      case 6: v = x[v & 1023]; break;
      case 7: if (v & 1) continue; v /= 3; break;
      default: v = ~v & 0xffff;
    }
  }
  out[threadIdx.x] = v;
}

KERNEL(scoped_atomics) {
  __shared__ cuda::atomic<int, cuda::thread_scope_block> turn;
  __shared__ int value;
  if (threadIdx.x == 0) { turn.store(0, cuda::memory_order_relaxed); value = 0; }
  __syncthreads();
  const int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) {
    while (turn.load(cuda::memory_order_acquire) != warp) {}
    value = value * 3 + x[warp];
    turn.store(warp + 1, cuda::memory_order_release);
  }
  __syncthreads();
  cuda::atomic_ref<int, cuda::thread_scope_device> most(out[1]);
  most.fetch_max(x[threadIdx.x]);
  if (threadIdx.x == 0) out[0] = value;
}

KERNEL(transpose) {
  __shared__ int tile[32][33];
  for (int i = threadIdx.y; i < 32; i += blockDim.y) tile[i][threadIdx.x] = x[i * 32 + threadIdx.x];
  __syncthreads();
  for (int i = threadIdx.y; i < 32; i += blockDim.y) out[i * 32 + threadIdx.x] = tile[threadIdx.x][i];
}

// A tree in shared memory with __syncwarp at its last levels.
KERNEL(tree) {
  __shared__ int s[256];
  s[threadIdx.x] = x[threadIdx.x] + x[threadIdx.x + 256];
  __syncthreads();
  for (int d = 128; d >= 32; d /= 2) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x < 32) {
    for (int d = 16; d > 0; d /= 2) {
      const int v = s[threadIdx.x + d];
      __syncwarp();
      s[threadIdx.x] += v;
      __syncwarp();
    }
  }
  if (threadIdx.x == 0) out[0] = s[0];
}

// Arrivals of every block of a cluster at one block's mbarrier.
extern "C" __global__ void __cluster_dims__(2, 1, 1) remote_barrier(const int* x, int* out) {
  __shared__ alignas(8) unsigned long long bar;
  __shared__ int slots[64];
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) { init(shared_address(&bar), 64); asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
  cluster.sync();
  int* remote = cluster.map_shared_rank(slots, 0);
  remote[cluster.block_rank() * 32 + threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
  asm volatile("{.reg .b32 r; mapa.shared::cluster.u32 r, %0, 0; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r];}" ::"r"(shared_address(&bar)) : "memory");
  if (cluster.block_rank() == 0) {
    asm volatile("{.reg .pred p; L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0; @!p bra L;}" ::"r"(shared_address(&bar)) : "memory");
    out[blockIdx.x / 2 * 64 + threadIdx.x] = slots[63 - threadIdx.x];
    out[blockIdx.x / 2 * 64 + 32 + threadIdx.x] = slots[31 - threadIdx.x];
  }
  cluster.sync();
}

KERNEL(approximations) {
  const float a = 0.1f + threadIdx.x * 0.37f;
  const float r = __sinf(a) + __expf(-a) + __logf(a) + rsqrtf(a) + tanhf(a) + __fdividef(a, 3.f) + powf(a, 1.5f) + erff(a) + cbrtf(a);
  const double d = sin(static_cast<double>(a)) + exp(-static_cast<double>(a)) + log1p(static_cast<double>(a)) + pow(static_cast<double>(a), 2.5) + atan(static_cast<double>(a)) + rsqrt(static_cast<double>(a));
  reinterpret_cast<float*>(out)[threadIdx.x] = r;
  reinterpret_cast<float*>(out)[32 + threadIdx.x] = static_cast<float>(d);
}

KERNEL(dependent_launch) {
  cudaGridDependencySynchronize();
  out[threadIdx.x] = x[threadIdx.x] + 1;
  cudaTriggerProgrammaticLaunchCompletion();
}
