// SPDX-License-Identifier: Apache-2.0
// Tensor copies of the language, run in the emulator.
#include "runtime/traced_fixture.h"
#include "tilewright/bulk_copy.h"
#include "tilewright/control.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"
#include "tilewright/tma.h"

#include <cstdint>
#include <numeric>

namespace tilewright {
namespace {

using TracedTma = test::TracedTest;
using Words = std::vector<std::uint32_t>;

TEST_F(TracedTma, CopiesABoxThatReachesBeyondTheTensor) {
  Words numbers(16 * 8);
  std::iota(numbers.begin(), numbers.end(), 1U);
  test::DeviceVector x = vector(u32, numbers);
  test::DeviceVector y = vector(u32, Words(8 * 4, 0));
  View matrix = make_view(x.buffer.address(), u32, std::vector<std::int64_t>{8, 16});
  TensorMapArg map{.type = u32, .box = {8, 4}};  // columns, rows

  auto kernel = [](const TensorMapParam& in, const Tensor& out) {
    Tensor tile = shared(u32, Layout(Shape{Int(32)}), 128);
    Mbarriers full;
    Value t = thread_idx().x;
    if_(t == 0, [&] { full.init(1); });
    barrier();
    if_(t == 0, [&] {
      full[0].arrive_expect_tx(box_bytes(in.arg()));
      tensor_load(tile(0), in, {12, 6}, full[0]);
    });
    full[0].wait(0);
    out(t) = tile(t);
  };
  TraceOptions options{.name = "tma", .target = device.target(), .block = {32, 1, 1}};
  Traced traced = trace(options, kernel, map, y.arg);
  Parameters parameters;
  pack(parameters, device, map, matrix);
  pack(parameters, y.arg, y.view);
  compile(device, std::move(traced))
      .launch({.grid = {1, 1, 1}, .block = {32, 1, 1}}, parameters, stream);
  stream.synchronize();

  Words expected(32, 0);
  for (std::uint32_t row = 0; row < 2; ++row) {
    for (std::uint32_t column = 0; column < 4; ++column)
      expected[row * 8 + column] = (row + 6) * 16 + column + 12 + 1;
  }
  EXPECT_EQ(download<std::uint32_t>(y.buffer), expected);
}

TEST_F(TracedTma, CopiesTheColumnsOfAConvolution) {
  // Two images of 4 x 5 pixels of 4 words; a filter of 3 x 3 with a border of one pixel.
  constexpr int kHeight = 4, kWidth = 5, kPixels = 16;
  Words numbers(2 * kHeight * kWidth * 4);
  std::iota(numbers.begin(), numbers.end(), 1U);
  test::DeviceVector x = vector(u32, numbers);
  test::DeviceVector y = vector(u32, Words(kPixels * 4, 99));
  View images =
      make_view(x.buffer.address(), u32, std::vector<std::int64_t>{2, kHeight, kWidth, 4});
  TensorMapArg map = im2col_arg(u32, 4, {{-1, -1, 0}, {-1, -1, 0}, 4, kPixels});
  auto kernel = [](const TensorMapParam& in, const Tensor& out) {
    Tensor tile = shared(u32, Layout(Shape{Int(kPixels * 4)}), 128);
    Mbarriers full;
    Value t = thread_idx().x;
    if_(t == 0, [&] { full.init(1); });
    barrier();
    if_(t == 0, [&] {
      full[0].arrive_expect_tx(box_bytes(in.arg()));
      tensor_load_im2col(tile(0), in, {0, -1, -1, 0}, {2, 1}, full[0]);
    });
    full[0].wait(0);
    for_(t, kPixels * 4, 32, [&](const Value& i) { out(i) = tile(i); });
  };
  TraceOptions options{.name = "im2col", .target = device.target(), .block = {32, 1, 1}};
  Traced traced = trace(options, kernel, map, y.arg);
  Parameters parameters;
  pack(parameters, device, map, images);
  pack(parameters, y.arg, y.view);
  compile(device, std::move(traced))
      .launch({.grid = {1, 1, 1}, .block = {32, 1, 1}}, parameters, stream);
  stream.synchronize();

  // Output pixel p of the first image sees input pixel p moved by (-1 + 2, -1 + 1); the filter's
  // first pixel runs from -1 to the last but one.
  Words expected;
  for (int p = 0; p < kPixels; ++p) {
    int row = p / kWidth - 1 + 1, column = p % kWidth - 1 + 2;
    for (int c = 0; c < 4; ++c) {
      bool inside = column < kWidth;
      expected.push_back(inside ? static_cast<std::uint32_t>((row * kWidth + column) * 4 + c + 1)
                                : 0);
    }
  }
  EXPECT_EQ(download<std::uint32_t>(y.buffer), expected);
}

}  // namespace
}  // namespace tilewright
