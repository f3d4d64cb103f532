// SPDX-License-Identifier: Apache-2.0
// Lesson 4: fragments. A warp holds a row in registers, reads memory once, and computes in f32.
#include "tilewright/tilewright.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

namespace tw = tilewright;

// begin kernel
// One warp a row, each lane with `columns / 32` neighbouring elements. `columns` is a number of the
// host: another one is another specialisation, and nothing of it is left to decide on the device.
struct Softmax {
  int columns;

  void operator()(const tw::Tensor& x, const tw::Tensor& y) const {
    int each = columns / 32;
    tw::Value row = tw::block_idx().x;
    tw::Value first = tw::lane_idx() * each;

    // Vectorised by what layout and alignment allow; arithmetic on a fragment is elementwise.
    tw::Fragment values = tw::load(x(row, first), each).to(tw::f32);

    auto larger = [](const tw::Value& a, const tw::Value& b) { return tw::max(a, b); };
    auto sum = [](const tw::Value& a, const tw::Value& b) { return a + b; };
    tw::Value top = tw::warp_reduce(tw::reduce(values, larger), larger);

    // A C++ loop decides while the kernel is recorded: it writes the body `each` times.
    tw::Fragment powers(tw::f32, each);
    for (int i = 0; i < each; ++i)
      powers[i] = tw::exp(values[i] - top);
    tw::Value total = tw::warp_reduce(tw::reduce(powers, sum), sum);
    tw::store(y(row, first), (powers * (1.0f / total)).to(y.type()));
  }
};
// end kernel

int run(const char* device_name) {
  tw::Device device = tw::Device::open(device_name);
  constexpr int kRows = 7;
  constexpr int kColumns = 256;
  std::vector<float> x(static_cast<std::size_t>(kRows) * kColumns);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i * 37 % 101) * 0.2f - 10;

  tw::Buffer x_memory = tw::upload(device, std::span<const float>(x));
  tw::Buffer y_memory(device, x_memory.size_bytes());
  const std::int64_t shape[] = {kRows, kColumns};
  tw::View x_view = tw::make_view(x_memory.address(), tw::f32, shape);
  tw::View y_view = tw::make_view(y_memory.address(), tw::f32, shape);
  tw::TensorArg arg = tw::tensor_arg(x_view, {.extents = 1});
  tw::TraceOptions options{.name = "softmax", .target = device.target(), .block = {32, 1, 1}};
  tw::Kernel kernel = tw::compile(device, tw::trace(options, Softmax{kColumns}, arg, arg));
  tw::Parameters parameters;
  tw::pack(parameters, arg, x_view);
  tw::pack(parameters, arg, y_view);
  tw::Stream stream(device);
  kernel.launch({.grid = {kRows}, .block = {32}}, parameters, stream);
  stream.synchronize();

  // In units of 2^-24 of the result: exp of the element and of the sum's terms 4 each (2 ulp), the
  // sum's tree 8, division and product 1 each. The subtraction before exp is off by one unit of its
  // argument, at most 20: in the element and in the sum. Together 58.
  std::vector<float> y = tw::download<float>(y_memory);
  double worst = 0;
  for (std::size_t row = 0; row < kRows; ++row) {
    const float* in = x.data() + row * kColumns;
    double top = *std::max_element(in, in + kColumns);
    double total = 0;
    for (int i = 0; i < kColumns; ++i)
      total += std::exp(in[i] - top);
    for (int i = 0; i < kColumns; ++i) {
      double right = std::exp(in[i] - top) / total;
      double is = y[row * kColumns + static_cast<std::size_t>(i)];
      worst = std::max(worst, std::fabs(is - right) / right);
    }
  }
  bool right = worst <= 58 * 0x1p-24;
  std::printf("softmax: %d rows are %s on %s (worst relative error %.1e), %zu findings\n", kRows,
              right ? "right" : "WRONG", device.id().c_str(), worst, device.findings().size());
  if (!right) return 1;
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
