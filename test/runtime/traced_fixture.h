// SPDX-License-Identifier: Apache-2.0
// Runs traced kernels over vectors on the test device.
#pragma once

#include "device_fixture.h"
#include "tilewright/compile.h"
#include "tilewright/trace.h"

#include <utility>
#include <vector>

namespace tilewright::test {

/// A contiguous tensor on the device, known to a trace by its size.
struct DeviceVector {
  TensorArg arg;
  View view;
  Buffer buffer;
};

class TracedTest : public DeviceTest {
 protected:
  template <class T>
  DeviceVector vector(Type type, const std::vector<T>& values) {
    Buffer buffer = upload(device, std::span<const T>(values));
    auto size = static_cast<std::int64_t>(values.size() * sizeof(T)) / bytes(type);
    View view = make_view(buffer.address(), type, std::vector<std::int64_t>{size});
    return {tensor_arg(view), view, std::move(buffer)};
  }

  /// Traces `body` for the device and runs it to its end.
  template <class Body, class... Vectors>
  void run(const LaunchConfig& config, const Body& body, const Vectors&... vectors) {
    TraceOptions options{.name = "traced", .target = device.target()};
    options.block = {config.block.x, config.block.y, config.block.z};
    if (config.cluster.x > 1) options.cluster = {config.cluster.x, 1, 1};
    Traced traced = trace(options, body, vectors.arg...);
    Parameters parameters;
    (pack(parameters, vectors.arg, vectors.view), ...);
    Kernel kernel = compile(device, std::move(traced));
    kernel.launch(config, parameters, stream);
    stream.synchronize();
  }
};

}  // namespace tilewright::test
