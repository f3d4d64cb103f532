// SPDX-License-Identifier: Apache-2.0
// FlashInfer's kernels on bf16 behind functions of C, for the scripts beside this file; see flashinfer_kernels.py.
#include <algorithm>
#include <cuda_runtime.h>
#include <flashinfer/activation.cuh>
#include <flashinfer/norm.cuh>
#include <flashinfer/pos_enc.cuh>

namespace {

using Bf16 = __nv_bfloat16;

__device__ __forceinline__ float silu(const float& x) { return x / (1.0f + __expf(-x)); }

/// One block a row where there are many, else several, as FlashInfer's own launcher has it.
template <float (*kActivation)(const float&)>
int act_and_mul(Bf16* out, const Bf16* input, std::uint32_t rows, std::uint32_t d,
                cudaStream_t stream) {
  constexpr std::uint32_t kVector = 8, kProcessors = 132;
  const std::uint32_t vectors = d / kVector, block = std::min(vectors, 256u);
  const auto blocks_of = [](std::uint32_t n, std::uint32_t by) { return (n + by - 1) / by; };
  std::uint32_t split = 1;
  if (rows < 2 * kProcessors) {
    const std::uint32_t fit = std::min(blocks_of(vectors, 2 * block), 4 * kProcessors / rows);
    split = std::min(std::max(2 * kProcessors / rows, fit), blocks_of(vectors, block));
  }
  using namespace flashinfer::activation;
  if (split == 1) {
    act_and_mul_kernel<Bf16, kActivation, kVector><<<rows, block, 0, stream>>>(out, input, d);
  } else if (blocks_of(vectors, block * split) >= 2) {
    act_and_mul_split_kernel<Bf16, kActivation, kVector, 2>
        <<<rows * split, block, 0, stream>>>(out, input, d, split);
  } else {
    act_and_mul_split_kernel<Bf16, kActivation, kVector, 1>
        <<<rows * split, block, 0, stream>>>(out, input, d, split);
  }
  return cudaGetLastError();
}

}  // namespace

extern "C" {

int rms_norm(Bf16* x, Bf16* w, Bf16* y, std::uint32_t rows, std::uint32_t h, float eps,
             cudaStream_t stream) {
  return flashinfer::norm::RMSNorm(x, w, y, rows, h, h, h, eps, false, stream);
}

/// In place: x becomes the norm, residual the sum.
int fused_add_rms_norm(Bf16* x, Bf16* residual, Bf16* w, std::uint32_t rows, std::uint32_t h,
                       float eps, cudaStream_t stream) {
  return flashinfer::norm::FusedAddRMSNorm(x, residual, w, rows, h, h, h, eps, false, stream);
}

int head_norm(Bf16* x, Bf16* w, Bf16* y, std::uint32_t rows, std::uint32_t heads, std::uint32_t d,
              float eps, cudaStream_t stream) {
  return flashinfer::norm::QKRMSNorm(x, w, y, rows, heads, d, heads * d, d, heads * d, d, eps,
                                     false, stream);
}

int rope(Bf16* q, Bf16* k, Bf16* q_out, Bf16* k_out, float* cos_sin, std::int64_t* positions,
         std::uint32_t rows, std::uint32_t q_heads, std::uint32_t k_heads, std::uint32_t d,
         cudaStream_t stream) {
  const std::size_t q_row = q_heads * d, k_row = k_heads * d;
  return flashinfer::BatchQKApplyRotaryPosIdsCosSinCache(
      q, k, q_out, k_out, cos_sin, positions, rows, q_heads, k_heads, d, d, q_row, d, k_row, d,
      q_row, d, k_row, d, false, stream);
}

int silu_and_mul(Bf16* input, Bf16* out, std::uint32_t rows, std::uint32_t d, cudaStream_t stream) {
  return act_and_mul<silu>(out, input, rows, d, stream);
}

}  // extern "C"
