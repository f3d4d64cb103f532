// SPDX-License-Identifier: Apache-2.0
// The least that copying a dispatch's rows takes: a bare CUDA kernel reads each row once and writes
// it eight times, to neighbouring places or where a stable dispatch to 128 experts puts them, with
// nothing to route; and a memset of the rows written.
//   nvcc -O3 -arch=sm_90a -o dispatch_floor dispatch_floor.cu && ./dispatch_floor
#include <algorithm>
#include <cstdio>
#include <vector>

namespace {

constexpr int kChoices = 8, kExperts = 128, kThreads = 128, kSets = 3, kSamples = 15;

enum class Mode { contiguous, scattered, memset };

template <int accesses, bool scattered>
__global__ void __launch_bounds__(kThreads)
    copy_rows(const uint4* x, uint4* y, const int* slot, int vectors) {
  long token = blockIdx.x;
  uint4 row[accesses];
  for (int a = 0; a < accesses; ++a) {
    int column = threadIdx.x + a * kThreads;
    if (column < vectors) row[a] = x[token * vectors + column];
  }
  for (int k = 0; k < kChoices; ++k) {
    long to = scattered ? slot[token * kChoices + k] : token * kChoices + k;
    for (int a = 0; a < accesses; ++a) {
      int column = threadIdx.x + a * kThreads;
      if (column < vectors) y[to * vectors + column] = row[a];
    }
  }
}

/// Distinct enough experts for each token by a multiplicative hash; rows in the order of choices.
std::vector<int> stable_slots(int tokens) {
  std::vector<std::vector<int>> of_expert(kExperts);
  for (unsigned i = 0; i < static_cast<unsigned>(tokens * kChoices); ++i)
    of_expert[((i + 1) * 2654435761u >> 7 & 0xffffff) % kExperts].push_back(static_cast<int>(i));
  std::vector<int> slots(static_cast<size_t>(tokens * kChoices));
  int row = 0;
  for (const std::vector<int>& choices : of_expert) {
    for (int choice : choices)
      slots[static_cast<size_t>(choice)] = row++;
  }
  return slots;
}

/// The median of some samples, each over sets of buffers that exceed the cache: us.
template <int accesses>
float measure(int tokens, int vectors, Mode mode) {
  size_t read = static_cast<size_t>(tokens) * vectors, written = read * kChoices;
  std::vector<int> slots = stable_slots(tokens);
  uint4 *x, *y;
  int* slot;
  cudaMalloc(&x, read * kSets * sizeof(uint4));
  cudaMalloc(&y, written * kSets * sizeof(uint4));
  cudaMalloc(&slot, slots.size() * sizeof(int));
  cudaMemcpy(slot, slots.data(), slots.size() * sizeof(int), cudaMemcpyHostToDevice);
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::vector<float> samples;
  for (int sample = 0; sample < kSamples; ++sample) {
    cudaEventRecord(begin);
    for (int set = 0; set < kSets; ++set) {
      const uint4* from = x + read * set;
      uint4* to = y + written * set;
      if (mode == Mode::contiguous)
        copy_rows<accesses, false><<<tokens, kThreads>>>(from, to, slot, vectors);
      if (mode == Mode::scattered)
        copy_rows<accesses, true><<<tokens, kThreads>>>(from, to, slot, vectors);
      if (mode == Mode::memset) cudaMemsetAsync(to, 0, written * sizeof(uint4));
    }
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    samples.push_back(ms * 1000 / kSets);
  }
  cudaFree(x);
  cudaFree(y);
  cudaFree(slot);
  std::nth_element(samples.begin(), samples.begin() + kSamples / 2, samples.end());
  return samples[kSamples / 2];
}

void report(int tokens, int vectors) {
  double row_bytes = vectors * 16.0;
  for (Mode mode : {Mode::contiguous, Mode::scattered, Mode::memset}) {
    float us = vectors > 512   ? measure<7>(tokens, vectors, mode)
               : vectors > 256 ? measure<4>(tokens, vectors, mode)
                               : measure<2>(tokens, vectors, mode);
    double rows = tokens * (mode == Mode::memset ? kChoices : kChoices + 1.0);
    const char* what = mode == Mode::memset ? "memset of the rows written" : "one read, eight writes";
    const char* where = mode == Mode::contiguous  ? " contiguous"
                        : mode == Mode::scattered ? " scattered"
                                                  : "";
    std::printf("{\"name\": \"%s T=%d row=%.0f%s\", \"real_time\": %.2f, \"bytes_per_second\": %.4g}\n",
                what, tokens, row_bytes, where, us, rows * row_bytes / us * 1e6);
  }
}

}  // namespace

int main() {
  report(4096, 896);
  report(8192, 256);
  report(8192, 512);
  report(4096, 448);
}
