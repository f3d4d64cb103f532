// SPDX-License-Identifier: Apache-2.0
// Kernels whose PTX by NVRTC lies beside this file, for sm_80 and sm_90a: no headers, as programs that compile at run time have them.
template <typename T, int N> struct Array { T v[N]; };
template <typename T> __device__ T warp_sum(T v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}
extern "C" __global__ void row_sums(const float* __restrict__ x, float* out, int columns) {
  __shared__ float parts[8];
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += x[blockIdx.x * columns + i];
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < blockDim.x / 32; ++i) sum += parts[i];
    out[blockIdx.x] = sum;
  }
}
extern "C" __global__ void polynomial(const double* x, double* out, Array<double, 5> coefficients, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double y = 0;
  for (int k = 5; k-- > 0;) y = y * x[i] + coefficients.v[k];
  out[i] = y / (1 + sqrt(fabs(x[i])));
}
extern "C" __global__ void histogram(const unsigned char* x, unsigned* bins, int n) {
  __shared__ unsigned local[256];
  local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x) atomicAdd(&local[x[i]], 1u);
  __syncthreads();
  if (local[threadIdx.x]) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
