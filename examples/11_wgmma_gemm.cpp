// SPDX-License-Identifier: Apache-2.0
// Lesson 11: a matrix multiplication at the hardware's speed. The kernel is in wgmma_gemm.h.
#include "examples/gemm_check.h"
#include "examples/wgmma_gemm.h"

#include <cstdio>

namespace tw = tilewright;

int run(const char* device_name) {
  tw::Device device = tw::Device::open(device_name);
  bool emulated = device.kind() == tw::DeviceKind::emulated;
  lesson::WgmmaGemm gemm;
  tw::Kernel kernel = tw::compile(device, gemm.trace(device.target()));
  // No extent is a multiple of the tile. The emulator gets fewer blocks than tiles, too.
  lesson::Problem problem =
      emulated ? lesson::Problem{300, 520, 136} : lesson::Problem{4000, 5000, 1000};
  int blocks = emulated ? 4 : device.properties().sm_count;
  return lesson::check_gemm("wgmma", device, problem,
                            [&](const lesson::Matrices& x, const tw::Stream& stream) {
                              gemm.prepare(kernel, x.a, x.b, x.c, blocks).launch(stream);
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
