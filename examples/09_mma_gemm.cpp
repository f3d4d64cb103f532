// SPDX-License-Identifier: Apache-2.0
// Lesson 9: a matrix multiplication that runs on any GPU since sm_80. The kernel is in mma_gemm.h;
// that of mma_tma_gemm.h is faster where there is a copy engine (sm_90a).
#include "examples/gemm_check.h"
#include "examples/mma_gemm.h"
#include "examples/mma_tma_gemm.h"

#include <cstdio>

namespace tw = tilewright;

int run(const char* device_name) {
  tw::Device device = tw::Device::open(device_name);
  bool emulated = device.kind() == tw::DeviceKind::emulated;
  lesson::MmaGemm gemm;
  // No extent is a multiple of the tile.
  lesson::Problem problem =
      emulated ? lesson::Problem{136, 264, 200} : lesson::Problem{4000, 5000, 1000};
  int wrong = lesson::check_gemm(
      "mma", device, problem, [&](const lesson::Matrices& x, const tw::Stream& stream) {
        tw::Kernel kernel = tw::compile(device, gemm.trace(device.target(), x.a, x.b, x.c));
        gemm.prepare(kernel, x.a, x.b, x.c).launch(stream);
        stream.synchronize();  // before the kernel is unloaded
      });
  if (wrong != 0 || device.target().sm != 90) return wrong;
  lesson::MmaTmaGemm fed_by_copies;
  return lesson::check_gemm(
      "mma_tma", device, problem, [&](const lesson::Matrices& x, const tw::Stream& stream) {
        tw::Kernel kernel = tw::compile(device, fed_by_copies.trace(device.target(), x.c));
        int blocks = emulated ? 3 : device.properties().sm_count;
        fed_by_copies.prepare(kernel, x.a, x.b, x.c, blocks).launch(stream);
        stream.synchronize();
      });
}

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "emu:sm_90a");
  } catch (const tw::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
