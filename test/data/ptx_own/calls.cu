// SPDX-License-Identifier: Apache-2.0
// Constructs that the other files of the corpus lack: indirect and recursive calls, vectors, atomics, local arrays.
#include <cstdint>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
typedef float (*Op)(float, float);
__device__ float add_op(float a, float b) { return a + b; }
__device__ float mul_op(float a, float b) { return a * b; }
__device__ Op table[2] = {add_op, mul_op};
struct Pair { float a; int b; double c; };
__constant__ Pair pairs[4];
__device__ __noinline__ Pair make(float a, int b) { return {a, b, a * 2.0}; }
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__managed__ int managed_counter;
extern __shared__ __align__(16) unsigned char dynamic[];
extern "C" __global__ void calls(const float* __restrict__ x, float* y, int which, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Pair p = make(x[i], which);
  y[i] = table[which & 1](x[i], float(p.c)) + fib(which) + pairs[which & 3].a;
}
extern "C" __global__ void __launch_bounds__(128, 2) atomics(unsigned long long* a, float* f, double* d, __half2* h, __nv_bfloat162* b, int* s, unsigned short* u) {
  atomicAdd(a, 1ull); atomicAdd(f, 1.f); atomicAdd(d, 1.0); atomicAdd(h, __float2half2_rn(1.f)); atomicAdd(b, __float2bfloat162_rn(1.f));
  atomicMin(s, 3); atomicMax(s, 4); atomicAnd(s, 5); atomicCAS(s, 1, 2); atomicExch(s, 3); atomicInc((unsigned*)s, 7); atomicCAS(u, 1, 2);
  atomicAdd_block(s, 1); atomicAdd_system(s, 1); __threadfence(); __threadfence_block(); __threadfence_system(); atomicAdd(&managed_counter, 1);
}
extern "C" __global__ void vectors(const float4* a, double2* b, const uchar4* c, short2* d, long long* e) {
  int t = threadIdx.x; float local[17];
  for (int i = 0; i < 17; ++i) local[i] = a[t].x * i;
  local[t % 17] += a[t].w; dynamic[t] = c[t].y;
  __syncthreads();
  b[t] = make_double2(local[(t * 7) % 17], dynamic[t ^ 1]);
  d[t] = make_short2(__dp4a(int(c[t].x), t, t), __byte_perm(t, t * 3, 0x3210));
  e[t] = clock64() + __brevll(e[t]) + __popcll(e[t]) + __clz(t) + __ffs(t) + __mul64hi(e[t], 3) + __umulhi(t, 5) + __funnelshift_l(t, t, 3) + __sad(t, 3, 4u);
  if (__syncthreads_or(t & 3)) e[t] += __ballot_sync(~0u, t & 1) + __any_sync(~0u, t) + __reduce_add_sync(~0u, t) + __match_any_sync(~0u, t);
  asm volatile("{ .reg .pred p; setp.eq.u32 p, %0, 0; @p bra L; nanosleep.u32 10; L: }" :: "r"(t));
}
extern "C" __global__ void divergent(double* x, int mode) {
  switch (mode) { case 0: x[0] = sin(x[0]); break; case 1: x[0] = exp(x[0]); break; case 2: x[0] = pow(x[0], 3.1); break; case 3: x[0] = sqrt(x[0]) / x[1]; break; default: __trap(); }
  if (x[0] != x[0]) __brkpt();
}
