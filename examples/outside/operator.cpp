// SPDX-License-Identifier: Apache-2.0
// Calls an operator of the library from C++. usage: operator_cpp [DEVICE]
#include <cstdio>
#include <kernels/rms_norm/rms_norm.h>
#include <span>
#include <tilewright/tilewright.h>
#include <vector>

namespace tw = tilewright;

int main(int argc, char** argv) try {
  // begin call
  const tw::Device device = tw::Device::open(argc > 1 ? argv[1] : "emu:sm_90a");  // or "cuda:0"
  const tw::Stream stream(device);
  const std::vector<float> ones(4 * 64, 1.0F);
  const tw::Buffer x = tw::upload(device, std::span<const float>(ones));
  const tw::Buffer y(device, x.size_bytes());
  const std::int64_t shape[] = {4, 64};
  tw::rms_norm(stream, {.x = tw::make_view(x.address(), tw::f32, shape),
                        .w = {},
                        .y = tw::make_view(y.address(), tw::f32, shape),
                        .rstd = {}});
  stream.synchronize();
  const std::vector<float> result = tw::download<float>(y);
  // end call
  std::printf("rms_norm: 1 becomes %.6f\n", static_cast<double>(result.back()));
  return result.back() > 0.999F && result.back() < 1.001F && device.findings().empty() ? 0 : 1;
} catch (const tw::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
