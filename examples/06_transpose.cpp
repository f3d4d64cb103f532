// SPDX-License-Identifier: Apache-2.0
// Lesson 6: layouts against bank conflicts. A tile is written by rows and read by columns.
//
// The banks (0 to 7) of an 8 x 8 tile, row by row; a warp reads one column at a time:
//     plain            swizzled: column XOR row
//     0 1 2 3 4 5 6 7  0 1 2 3 4 5 6 7
//     0 1 2 3 4 5 6 7  1 0 3 2 5 4 7 6
//     0 1 2 3 4 5 6 7  2 3 0 1 6 7 4 5
//     ...              ...                a column has every bank once
#include "tilewright/tilewright.h"

#include <cstdio>
#include <span>
#include <vector>

namespace tw = tilewright;

constexpr int kTile = 32;       // rows and columns, one warp wide
constexpr int kRowsAtOnce = 8;  // 256 threads
constexpr int kRows = 96;
constexpr int kColumns = 64;

// begin kernel
struct Transpose {
  tw::ComposedLayout place;  // where element (row, column) of the tile stands

  void operator()(const tw::Tensor& in, const tw::Tensor& out) const {
    tw::Tensor tile = tw::shared(tw::f32, tw::Layout(tw::Shape{kTile * kTile}));
    auto element = [&](const tw::Index& row, const tw::Index& column) {
      return tile(tw::to_value(place(tw::coord(row, column))));
    };
    tw::Value lane = tw::thread_idx().x % kTile;
    tw::Value first = tw::thread_idx().x / kTile;
    tw::Tensor from =
        tw::local_tile(in, {kTile, kTile}, tw::coord(tw::block_idx().y, tw::block_idx().x));
    tw::Tensor to =
        tw::local_tile(out, {kTile, kTile}, tw::coord(tw::block_idx().x, tw::block_idx().y));

    // A C++ loop: it is unrolled. Global memory is read and written by whole rows of 128 bytes.
    for (int row = 0; row < kTile; row += kRowsAtOnce)
      element(first + row, lane) = from(first + row, lane);
    tw::barrier();
    for (int row = 0; row < kTile; row += kRowsAtOnce)
      to(first + row, lane) = element(lane, first + row);  // a column of the tile
  }
};
// end kernel

/// Transposes with the tile laid out so. Returns the passes that shared memory took more than its
/// bytes need, or -1 for a wrong result or a finding.
long extra_passes(const tw::Device& device, const tw::ComposedLayout& place) {
  std::vector<float> in(static_cast<std::size_t>(kRows) * kColumns);
  for (std::size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<float>(i);
  tw::Buffer in_memory = tw::upload(device, std::span<const float>(in));
  tw::Buffer out_memory(device, in_memory.size_bytes());
  const std::int64_t in_shape[] = {kRows, kColumns};
  const std::int64_t out_shape[] = {kColumns, kRows};
  tw::View in_view = tw::make_view(in_memory.address(), tw::f32, in_shape);
  tw::View out_view = tw::make_view(out_memory.address(), tw::f32, out_shape);
  tw::TensorArg in_arg = tw::tensor_arg(in_view);
  tw::TensorArg out_arg = tw::tensor_arg(out_view);

  constexpr int kThreads = kTile * kRowsAtOnce;
  tw::TraceOptions options{
      .name = "transpose", .target = device.target(), .block = {kThreads, 1, 1}};
  tw::Kernel kernel = tw::compile(device, tw::trace(options, Transpose{place}, in_arg, out_arg));
  tw::Parameters parameters;
  tw::pack(parameters, in_arg, in_view);
  tw::pack(parameters, out_arg, out_view);
  tw::Stream stream(device);
  tw::emu::Options counting;
  counting.counters = tw::emu::Counting::on;
  device.set_options(counting);  // without effect on a GPU
  kernel.launch({.grid = {kColumns / kTile, kRows / kTile}, .block = {kThreads}}, parameters,
                stream);
  stream.synchronize();

  std::vector<float> out = tw::download<float>(out_memory);
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (out[i % kColumns * kRows + i / kColumns] != in[i]) return -1;
  }
  if (!device.findings().empty()) return -1;
  if (device.kind() == tw::DeviceKind::cuda) return 0;  // Nsight Compute counts them there
  long extra = 0;
  for (const tw::emu::InstrCount& count : device.last_report().counters.instructions)
    extra += static_cast<long>(count.wavefronts - count.ideal_wavefronts);
  return extra;
}

int run(const char* device_name) {
  tw::Device device = tw::Device::open(device_name);
  tw::Layout rows = tw::make_row_major(tw::Shape{kTile, kTile});
  // The swizzle XORs the row, five bits at bit 5 of the place, onto the column below it.
  long plain = extra_passes(device, rows);
  long swizzled = extra_passes(device, tw::composition(tw::Swizzle(5, 0, 5), rows));
  if (plain < 0 || swizzled != 0) return std::printf("transpose: WRONG\n"), 1;
  std::printf("transpose: right on %s; %ld extra passes in rows, %ld swizzled\n",
              device.id().c_str(), plain, swizzled);
  return 0;
}

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "emu:sm_90a");
  } catch (const tw::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
