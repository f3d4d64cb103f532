// SPDX-License-Identifier: Apache-2.0
// What a test can see of the fake CUDA driver, and order from it.
#pragma once

#include <cstddef>

/// The arguments of cuTensorMapEncodeTiled or -Im2col, whose map is this struct's bytes.
struct FakeTensorMap {
  int type = 0;
  unsigned rank = 0;
  unsigned long address = 0;
  unsigned long extents[5] = {};
  unsigned long strides[4] = {};
  unsigned box[5] = {};
  int swizzle = 0;
  int fill = 0;
  int lower = 0, upper = 0;  ///< of the first pixel dimension
};

struct FakeCudaLaunch {
  unsigned grid[3] = {};
  unsigned block[3] = {};
  unsigned cluster[3] = {};
  unsigned dynamic_smem_bytes = 0;
  void* stream = nullptr;
  int cooperative = 0;
  int dependent = 0;
  std::size_t parameter_bytes = 0;
  unsigned char parameters[12] = {};
  FakeTensorMap map;
};

/// How many of each are alive, and what was asked for last.
struct FakeCudaStatus {
  int primary_contexts = 0;
  int context_pushes = 0;
  int peer_accesses = 0;
  int allocations = 0;
  int streams = 0;
  int modules = 0;
  int libraries = 0;
  int graphs = 0;
  int graph_execs = 0;
  int graph_launches = 0;
  int launches = 0;
  int max_dynamic_smem = 0;
  int non_portable_cluster = 0;
  int takes_tensor_map = 0;  ///< set it: kernels take an int and a tensor map
  const char* jit_log = "";
  FakeCudaLaunch last_launch;
};

extern "C" {
FakeCudaStatus* fake_cuda_status();
/// Lets the call (without its _vN) answer `result` from now on; "" ends that.
void fake_cuda_fail(const char* call, int result);
void fake_cuda_set_current(void* context);
}
