// SPDX-License-Identifier: Apache-2.0
// A user's C++ program: a kernel of its own and an operator of the library, on the emulator.
#include <cstdio>
#include <kernels/rms_norm/rms_norm.h>
#include <tilewright/tilewright.h>

namespace tw = tilewright;

int main() {
  const tw::Device device = tw::Device::open("emu:sm_90a");
  const tw::Stream stream(device);
  const std::vector<float> ones(64, 1.0F);
  const tw::Buffer x = tw::upload(device, std::span<const float>(ones));
  const tw::Buffer y(device, x.size_bytes());
  const std::int64_t shape[] = {1, 64};
  tw::rms_norm(stream, {.x = tw::make_view(x.address(), tw::f32, shape),
                        .w = {},
                        .y = tw::make_view(y.address(), tw::f32, shape),
                        .rstd = {}});

  const std::int64_t length[] = {64};
  const tw::View view = tw::make_view(y.address(), tw::f32, length);
  const tw::TensorArg arg = tw::tensor_arg(view);
  const tw::Kernel twice = tw::compile(device, tw::trace(
                                                   {.name = "twice", .block = {64, 1, 1}},
                                                   [](const tw::Tensor& t) {
                                                     const tw::Value i = tw::thread_idx().x;
                                                     t(i) = t(i).load() * 2;
                                                   },
                                                   arg));
  tw::Parameters parameters;
  tw::pack(parameters, arg, view);
  twice.launch({.grid = {1, 1, 1}, .block = {64, 1, 1}}, parameters, stream);
  const std::vector<float> result = tw::download<float>(y);
  std::printf("%g\n", static_cast<double>(result[63]));
  return result[63] > 1.99F && result[63] < 2.01F && device.findings().empty() ? 0 : 1;
}
