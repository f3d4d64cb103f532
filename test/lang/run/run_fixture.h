// SPDX-License-Identifier: Apache-2.0
// Runs a traced body on arrays of raw elements and brings them back.
#pragma once

#include "device_fixture.h"
#include "tilewright/compile.h"
#include "tilewright/tensor.h"
#include "tilewright/thread.h"

#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace tilewright::test {

/// The elements of an array as bits, zero-extended; row-major.
struct Data {
  Type type;
  std::vector<std::int64_t> shape;
  std::vector<std::uint64_t> bits;

  Data(Type element, std::vector<std::int64_t> extents);
};
/// A vector of given elements.
Data vector_of(Type type, std::vector<std::uint64_t> elements);

class RunTest : public DeviceTest {
 protected:
  struct Blocks {
    int threads = 32;
    Dim3 grid{};
    std::int64_t dynamic_smem_bytes = 0;
    DynamicModes dynamic = {};
    bool cooperative = false;
  };

  /// Calls `body(tensor...)` in the trace, launches it, and updates every array.
  template <class Body, class... D>
  void run(Blocks blocks, const Body& body, D&... data) {
    std::vector<Buffer> buffers;
    std::vector<View> views;
    (buffers.push_back(uploaded(data)), ...);
    std::size_t next = 0;
    ((views.push_back(view_of(data, buffers[next])), ++next), ...);
    std::size_t index = 0;
    auto arg = [&](const Data&) { return tensor_arg(views[index++], blocks.dynamic); };
    std::array<TensorArg, sizeof...(D)> args{arg(data)...};
    TraceOptions options{
        .name = "body", .target = device.target(), .block = {blocks.threads, 1, 1}};
    Traced traced =
        std::apply([&](const auto&... each) { return trace(options, body, each...); }, args);
    Kernel kernel = compile(device, std::move(traced));
    Parameters parameters;
    for (std::size_t i = 0; i < views.size(); ++i)
      pack(parameters, args[i], views[i]);
    kernel.launch({.grid = blocks.grid,
                   .block = {blocks.threads},
                   .dynamic_smem_bytes = blocks.dynamic_smem_bytes,
                   .cooperative = blocks.cooperative},
                  parameters, stream);
    stream.synchronize();
    next = 0;
    (fetch(data, buffers[next++]), ...);
  }

 private:
  Buffer uploaded(const Data& data) const;
  static View view_of(const Data& data, const Buffer& buffer);
  static void fetch(Data& data, const Buffer& buffer);
};

}  // namespace tilewright::test
