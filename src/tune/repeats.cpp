// SPDX-License-Identifier: Apache-2.0
// Repeated launches, restored before and compared behind each.
#include "tune/repeats.h"

#include "tilewright/atomic.h"
#include "tilewright/compile.h"
#include "tilewright/control.h"
#include "tilewright/graph.h"
#include "tilewright/launch.h"
#include "tilewright/thread.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tilewright::tune {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kInGraph = 100;      // launches
constexpr std::int64_t kGraphsQueued = 50;  // before the host waits

/// A tensor that a launch writes, as it was before and after the first one.
struct Written {
  std::string name;
  DeviceAddress address = 0;
  Buffer before, first;

  Written(const Stream& stream, std::string_view tensor, DeviceAddress at, std::int64_t size_bytes)
      : name(tensor),
        address(at),
        before(stream.device(), size_bytes),
        first(stream.device(), size_bytes) {
    copy_on_device(before.address(), address, size_bytes, stream);
  }
  void keep(const Stream& stream) const {
    copy_on_device(first.address(), address, first.size_bytes(), stream);
  }
  void restore(const Stream& stream) const {
    copy_on_device(address, before.address(), before.size_bytes(), stream);
  }
};

}  // namespace

PreparedLaunch prepare_comparison(const Device& device, DeviceAddress a, DeviceAddress b,
                                  std::int64_t size_bytes, DeviceAddress count) {
  const bool words = size_bytes % 4 == 0;
  const Type type = words ? u32 : u8;
  const std::array<std::int64_t, 1> shape{words ? size_bytes / 4 : size_bytes}, one{1};
  const View first = make_view(a, type, shape), second = make_view(b, type, shape);
  const View sum = make_view(count, u64, one);
  const TensorArg arg = tensor_arg(first, {.extents = 1});
  const TensorArg second_arg = tensor_arg(second, {.extents = 1}), sum_arg = tensor_arg(sum);
  const auto body = [](const Tensor& x, const Tensor& y, const Tensor& differing) {
    const Value i = block_idx().x.to(s64) * kThreads + thread_idx().x.to(s64);
    if_(i < to_value(size(x.shape()[0])).to(s64), [&] {
      if_(x(i).load().to(u32) != y(i).load().to(u32),
          [&] { red_add(differing(0), constant(u64, 1)); });
    });
  };
  const Kernel kernel =
      compile(device, trace({.name = words ? "differing_words" : "differing_bytes",
                             .target = device.target(),
                             .block = {kThreads, 1, 1}},
                            body, arg, second_arg, sum_arg));
  Parameters parameters;
  pack(parameters, arg, first);
  pack(parameters, second_arg, second);
  pack(parameters, sum_arg, sum);
  LaunchConfig config;
  config.grid.x = static_cast<int>((shape[0] + kThreads - 1) / kThreads);
  config.block.x = kThreads;
  return kernel.prepare(config, parameters);
}

Repeats repeat(const Stream& stream, std::span<const Session::Place> places,
               const std::function<void()>& launch, std::int64_t times) {
  const Device& device = stream.device();
  std::vector<Written> written;
  for (const Session::Place& place : places) {
    if (place.size_bytes > 0)
      written.emplace_back(stream, place.name, place.address, place.size_bytes);
  }
  launch();
  const Buffer counts(device,
                      static_cast<std::int64_t>(std::max<std::size_t>(written.size(), 1) * 8));
  counts.fill(std::byte{0});
  std::vector<PreparedLaunch> comparisons;
  for (const Written& each : written) {
    each.keep(stream);
    comparisons.push_back(prepare_comparison(device, each.address, each.first.address(),
                                             each.first.size_bytes(),
                                             counts.address() + 8 * comparisons.size()));
  }
  const auto once = [&] {
    for (const Written& each : written)
      each.restore(stream);
    launch();
    for (const PreparedLaunch& comparison : comparisons)
      comparison.launch(stream);
  };
  for (std::int64_t i = 0; i < times % kInGraph; ++i)
    once();
  if (times >= kInGraph) {
    const Graph graph = Graph::capture(stream, [&] {
      for (std::int64_t i = 0; i < kInGraph; ++i)
        once();
    });
    for (std::int64_t i = 1; i <= times / kInGraph; ++i) {
      graph.launch(stream);
      if (i % kGraphsQueued == 0) stream.synchronize();
    }
  }
  stream.synchronize();
  Repeats repeats{times, {}};
  const std::vector<std::uint64_t> found = download<std::uint64_t>(counts);
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (found[i] != 0) repeats.differences.push_back({written[i].name, found[i]});
  }
  return repeats;
}

Repeats repeat(const Stream& stream, const Inputs& inputs, const std::vector<std::string>& wanted,
               std::int64_t times) {
  const Device& device = stream.device();
  if (device.kind() != DeviceKind::cuda) {
    throw Error(
        ErrorKind::unsupported,
        "repeat: " + device.id() + " gives the same bits for the same seed; use a cuda device");
  }
  const Session session(device, inputs, wanted);
  return repeat(
      stream, session.written(), [&] { session.launch(stream); }, times);
}

}  // namespace tilewright::tune
