// SPDX-License-Identifier: Apache-2.0
// Lesson 2: tiles. Blocks copy a ragged matrix through shared memory, with asynchronous copies.
#include "tilewright/tilewright.h"

#include <cstdio>
#include <numeric>
#include <span>
#include <vector>

namespace tw = tilewright;

// begin kernel
// The specialisation: plain numbers of the host, fixed while the kernel is recorded.
struct TileCopy {
  int tile_m = 32, threads = 256;

  void operator()(const tw::Tensor& src, const tw::Tensor& dst) const {
    int vector = 128 / tw::bits(src.type());  // elements of the widest access
    int across = threads / tile_m;            // threads beside one another in a row of the tile
    tw::Shape tile{tile_m, across * vector};

    // Which thread moves which elements: `lanes` of threads, each with one vector of a row.
    tw::Layout lanes = tw::make_row_major(tw::Shape{tile_m, across});
    auto load = tw::tiled_copy(tw::CpAsync{.bits = 128}, src.type(), lanes, tw::Shape{1, vector});
    auto save = tw::tiled_copy(tw::Universal{.bits = 128}, src.type(), lanes, tw::Shape{1, vector});

    // This block's tile of both matrices, and which coordinates of it exist at the ragged edges.
    tw::IntTuple at = tw::coord(tw::block_idx().y, tw::block_idx().x);
    tw::Tensor gS = tw::local_tile(src, tile, at);  // (TILE_M, TILE_N)
    tw::Tensor gD = tw::local_tile(dst, tile, at);  // (TILE_M, TILE_N)
    tw::Bounds inside = tw::in_bounds(src, tile, at);
    tw::Tensor sS = tw::shared(src.type(), tw::make_row_major(tile));  // (TILE_M, TILE_N)

    tw::copy_if(load, gS, sS, inside);  // begins: the bytes travel without registers
    tw::cp_async_wait_all();            // this thread's bytes are there
    tw::barrier();                      // everybody's are
    tw::copy_if(save, sS, gD, inside);
  }
};
// end kernel

int run(const char* device_name) {
  tw::Device device = tw::Device::open(device_name);
  constexpr int kRows = 100;
  constexpr int kColumns = 200;
  std::vector<float> source(static_cast<std::size_t>(kRows) * kColumns);
  std::iota(source.begin(), source.end(), 1.0f);

  tw::Buffer src_memory = tw::upload(device, std::span<const float>(source));
  tw::Buffer dst_memory(device, src_memory.size_bytes());
  const std::int64_t shape[] = {kRows, kColumns};
  tw::View src = tw::make_view(src_memory.address(), tw::f32, shape);
  tw::View dst = tw::make_view(dst_memory.address(), tw::f32, shape);

  // The number of rows stays a parameter. Columns and strides are folded into the code, which so
  // knows that every vector of 16 bytes lies inside or outside as a whole.
  tw::TensorArg src_arg = tw::tensor_arg(src, {.extents = 1});
  tw::TensorArg dst_arg = tw::tensor_arg(dst, {.extents = 1});
  TileCopy copy;
  tw::TraceOptions options{
      .name = "tile_copy", .target = device.target(), .block = {copy.threads, 1, 1}};
  tw::Kernel kernel = tw::compile(device, tw::trace(options, copy, src_arg, dst_arg));

  tw::Parameters parameters;
  tw::pack(parameters, src_arg, src);
  tw::pack(parameters, dst_arg, dst);
  int tile_n = copy.threads / copy.tile_m * 4;
  tw::LaunchConfig launch;
  launch.grid = {(kColumns + tile_n - 1) / tile_n, (kRows + copy.tile_m - 1) / copy.tile_m};
  launch.block = {copy.threads};
  tw::Stream stream(device);
  kernel.launch(launch, parameters, stream);
  stream.synchronize();

  bool right = tw::download<float>(dst_memory) == source;
  std::printf("tile_copy: %d x %d elements are %s on %s, %zu findings\n", kRows, kColumns,
              right ? "right" : "WRONG", device.id().c_str(), device.findings().size());
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
