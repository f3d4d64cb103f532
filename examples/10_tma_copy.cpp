// SPDX-License-Identifier: Apache-2.0
// Lesson 10: tensor copies. A matrix travels through shared memory by the copy engine alone.
#include "tilewright/tilewright.h"

#include <cstdio>
#include <numeric>
#include <span>
#include <vector>

namespace tw = tilewright;

// begin kernel
//   warp 0, one thread                  a ring of stages                 warp 1, one thread
//   waits for "empty"               +----+----+----+----+            waits for "full"
//   from ---- tensor_load --------> |full|full|full|free| ---------> tensor_store ----> to
//   expects the bytes               +----+----+----+----+            releases the stage before,
//   at "full"                         one tile each                  whose bytes have been read
//
// No thread touches the data. Tiles beyond the edges need no code: the copy engine knows the
// tensor's extents from its map.
struct TmaCopy {
  int rows = 64, columns = 64, stages = 4;

  tw::TensorMapArg map() const { return {tw::f32, {columns, rows}}; }
  std::int64_t smem_bytes() const { return std::int64_t{stages} * rows * columns * 4; }

  void operator()(const tw::TensorMapParam& from, const tw::TensorMapParam& to, const tw::Value& m,
                  const tw::Value& n) const {
    tw::Tensor ring =
        tw::dynamic_shared(tw::f32, tw::make_row_major(tw::Shape{stages, rows * columns}));
    tw::BulkPipeline pipe(stages, 1);
    tw::TileScheduler tiles((m + (rows - 1)) / rows, (n + (columns - 1)) / columns, 1);
    auto each_tile = [&](auto body) {
      tiles.for_each(tw::block_idx().x, tw::grid_dim().x,
                     [&](const tw::Value& i, const tw::Value& j) { body(i * rows, j * columns); });
    };

    auto load = [&] {
      tw::if_(tw::elect_one(), [&] {
        tw::StageCursor at = pipe.cursor();
        each_tile([&](const tw::Value& row, const tw::Value& column) {
          tw::Mbarrier full = pipe.acquire(at);
          full.arrive_expect_tx(tw::box_bytes(map()));
          tw::tensor_load(ring(at.stage(), 0), from, {column, row}, full);
          at.advance();
        });
      });
    };
    auto store = [&] {
      tw::Value leader = tw::lane_idx() == 0;
      tw::StageCursor at = pipe.cursor();
      tw::StageCursor done = pipe.cursor();  // one stage behind
      tw::Var begun(false, tw::Uniformity::warp);
      each_tile([&](const tw::Value& row, const tw::Value& column) {
        pipe.wait_full(at);
        tw::if_(leader, [&] {
          tw::tensor_store(to, {column, row}, ring(at.stage(), 0));
          tw::bulk_commit();
          tw::bulk_wait_read(1);  // all but the copy just begun have read their stages
        });
        tw::if_(begun, [&] {
          pipe.release(done);
          done.advance();
        });
        begun = true;
        at.advance();
      });
      tw::if_(leader, [] { tw::bulk_wait_read(); });
    };
    tw::roles(tw::role(1, 0, load), tw::role(1, 0, store));
  }
};
// end kernel

int run(const char* device_name) {
  tw::Device device = tw::Device::open(device_name);
  bool emulated = device.kind() == tw::DeviceKind::emulated;
  const std::int64_t m = emulated ? 200 : 5000, n = emulated ? 332 : 9004;
  std::vector<float> source(static_cast<std::size_t>(m * n));
  std::iota(source.begin(), source.end(), 1.0f);
  tw::Buffer from = tw::upload(device, std::span<const float>(source));
  tw::Buffer to(device, from.size_bytes());
  const std::int64_t shape[] = {m, n};

  TmaCopy copy;
  tw::ScalarArg extent{tw::s32, {1, 1, 1 << 30}};
  tw::TraceOptions options{.name = "tma_copy", .target = device.target(), .block = {64, 1, 1}};
  tw::Kernel kernel =
      tw::compile(device, tw::trace(options, copy, copy.map(), copy.map(), extent, extent));
  tw::Parameters parameters;
  tw::pack(parameters, device, copy.map(), tw::make_view(from.address(), tw::f32, shape));
  tw::pack(parameters, device, copy.map(), tw::make_view(to.address(), tw::f32, shape));
  parameters.add(static_cast<int>(m)).add(static_cast<int>(n));
  int blocks = emulated ? 3 : 2 * device.properties().sm_count;
  tw::Stream stream(device);
  kernel.launch({.grid = {blocks}, .block = {64}, .dynamic_smem_bytes = copy.smem_bytes()},
                parameters, stream);
  stream.synchronize();

  bool right = tw::download<float>(to) == source;
  std::printf("tma_copy: %ld x %ld numbers are %s on %s, %zu findings\n", static_cast<long>(m),
              static_cast<long>(n), right ? "right" : "WRONG", device.id().c_str(),
              device.findings().size());
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
