// SPDX-License-Identifier: Apache-2.0
// Lesson 1: a kernel is a C++ function that runs once and records what every thread will do.
#include "tilewright/tilewright.h"

#include <cstdio>
#include <numeric>
#include <span>
#include <vector>

namespace tw = tilewright;

// begin kernel
// Tensors and values stand for what the device will have. `if_` decides there; C++'s own `if` and
// `for` would decide here, while the kernel is recorded.
void vector_add(const tw::Tensor& a, const tw::Tensor& b, const tw::Tensor& c) {
  tw::Value i = tw::block_idx().x * tw::block_dim().x + tw::thread_idx().x;
  tw::Value n = tw::to_value(a.shape()[0].value());
  tw::if_(i < n, [&] { c(i) = a(i).load() + b(i).load(); });
}
// end kernel

int run(const char* device_name) {
  tw::Device device = tw::Device::open(device_name);  // "cuda:0", or "emu:sm_90a" without a GPU
  constexpr int kElems = 1000;
  std::vector<float> a(kElems);
  std::iota(a.begin(), a.end(), 0.0f);

  // Memory on the device, and views: address, type, shape.
  tw::Buffer a_memory = tw::upload(device, std::span<const float>(a));
  tw::Buffer c_memory(device, a_memory.size_bytes());
  const std::int64_t shape[] = {kElems};
  tw::View a_view = tw::make_view(a_memory.address(), tw::f32, shape);
  tw::View c_view = tw::make_view(c_memory.address(), tw::f32, shape);

  // The extent stays a parameter: one specialisation serves every length.
  tw::TensorArg arg = tw::tensor_arg(a_view, {.extents = 1});
  constexpr int kThreads = 128;
  tw::TraceOptions options{
      .name = "vector_add", .target = device.target(), .block = {kThreads, 1, 1}};
  tw::Kernel kernel = tw::compile(device, tw::trace(options, vector_add, arg, arg, arg));

  // Parameters in the order of the arguments; a launch checks that the views fit.
  tw::Parameters parameters;
  for (const tw::View& view : {a_view, a_view, c_view})
    tw::pack(parameters, arg, view);
  tw::Stream stream(device);
  kernel.launch({.grid = {(kElems + kThreads - 1) / kThreads}, .block = {kThreads}}, parameters,
                stream);
  stream.synchronize();

  std::vector<float> c = tw::download<float>(c_memory);
  for (int i = 0; i < kElems; ++i) {
    auto k = static_cast<std::size_t>(i);
    if (c[k] != 2.0f * a[k]) return std::printf("c[%d] is %g\n", i, static_cast<double>(c[k])), 1;
  }
  std::printf("vector_add: %d elements are right on %s, %zu findings\n", kElems,
              device.id().c_str(), device.findings().size());
  return device.findings().empty() ? 0 : 3;
}

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "emu:sm_90a");
  } catch (const tw::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
