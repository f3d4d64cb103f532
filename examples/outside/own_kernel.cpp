// SPDX-License-Identifier: Apache-2.0
// A kernel of one's own: written, checked, and timed on a GPU. usage: own_kernel [DEVICE]
#include <cmath>
#include <cstdio>
#include <span>
#include <tilewright/tilewright.h>
#include <vector>

namespace tw = tilewright;

// begin kernel
void scale_and_add(const tw::Tensor& x, const tw::Tensor& y) {
  tw::Value i = tw::block_idx().x * tw::block_dim().x + tw::thread_idx().x;
  tw::if_(i < tw::to_value(x.shape()[0].value()),
          [&] { y(i) = tw::fma(x(i).load(), 3.0F, y(i).load()); });
}
// end kernel

constexpr int kThreads = 256;

/// Milliseconds of one launch, from graphs of many.
double time_ms(const tw::Stream& stream, const tw::PreparedLaunch& launch) {
  constexpr int kLaunches = 100;
  const tw::Graph graph = tw::Graph::capture(stream, [&] {
    for (int i = 0; i < kLaunches; ++i)
      launch.launch(stream);
  });
  graph.launch(stream);  // warms up
  const tw::Event start(stream.device()), end(stream.device());
  start.record(stream);
  graph.launch(stream);
  end.record(stream);
  return tw::elapsed_ms(start, end) / kLaunches;
}

int main(int argc, char** argv) try {
  const tw::Device device = tw::Device::open(argc > 1 ? argv[1] : "emu:sm_90a");
  const bool on_gpu = device.kind() == tw::DeviceKind::cuda;
  const int count = on_gpu ? 1 << 26 : 1000;
  std::vector<float> x(static_cast<std::size_t>(count)), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i % 17);
    y[i] = 0.5F * static_cast<float>(i % 5);
  }
  const tw::Buffer x_memory = tw::upload(device, std::span<const float>(x));
  const tw::Buffer y_memory = tw::upload(device, std::span<const float>(y));
  const std::int64_t shape[] = {count};
  const tw::View x_view = tw::make_view(x_memory.address(), tw::f32, shape);
  const tw::View y_view = tw::make_view(y_memory.address(), tw::f32, shape);

  const tw::TensorArg arg = tw::tensor_arg(x_view, {.extents = 1});  // serves every length
  const tw::TraceOptions options{
      .name = "scale_and_add", .target = device.target(), .block = {kThreads, 1, 1}};
  const tw::Kernel kernel = tw::compile(device, tw::trace(options, scale_and_add, arg, arg));
  tw::Parameters parameters;
  tw::pack(parameters, arg, x_view);
  tw::pack(parameters, arg, y_view);
  const tw::PreparedLaunch launch = kernel.prepare(
      {.grid = {(count + kThreads - 1) / kThreads}, .block = {kThreads}}, parameters);
  const tw::Stream stream(device);
  launch.launch(stream);

  const std::vector<float> result = tw::download<float>(y_memory);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (result[i] != std::fma(x[i], 3.0F, y[i])) return std::printf("y[%zu] is wrong\n", i), 1;
  }
  for (const auto& found : device.findings())  // the emulator checks accesses, races, barriers
    std::printf("%s\n", tw::emu::to_string(found).c_str());
  std::printf("%d elements are right on %s\n", count, device.id().c_str());
  if (on_gpu) {
    const double ms = time_ms(stream, launch);
    std::printf("%.1f us, %.2f TB/s\n", ms * 1e3, 12.0 * count / ms * 1e-9);
  }
  return device.findings().empty() ? 0 : 1;
} catch (const tw::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
