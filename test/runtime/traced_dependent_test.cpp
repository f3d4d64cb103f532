// SPDX-License-Identifier: Apache-2.0
// Dependent launches: a grid that may begin before its predecessor has ended.
#include "runtime/traced_fixture.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

class TracedDependent : public test::TracedTest {
 protected:
  template <class Body, class... Vectors>
  Kernel compiled(const Body& body, const Vectors&... vectors) {
    return compile(device, trace({.name = "k", .target = device.target(), .block = {32, 1, 1}},
                                 body, vectors.arg...));
  }
};

TEST_F(TracedDependent, TheSecondGridReadsWhatTheFirstWroteAfterItsWait) {
  constexpr int kBlocks = 64;
  std::vector<std::uint32_t> zeros(std::size_t{kBlocks} * 32, 0);
  test::DeviceVector between = vector(u32, zeros);
  test::DeviceVector out = vector(u32, zeros);
  auto produce = [](const Tensor& x) {
    grid_dependency_launch();  // the next grid may start its prologue
    Value i = block_idx().x * 32 + thread_idx().x;
    x(i) = (i * 3).to(u32);
  };
  auto consume = [](const Tensor& x, const Tensor& y) {
    Value i = block_idx().x * 32 + thread_idx().x;
    grid_dependency_wait();
    y(i) = x(kBlocks * 32 - 1 - i).load() + 1u;
  };
  Kernel first = compiled(produce, between);
  Kernel second = compiled(consume, between, out);
  Parameters written;
  pack(written, between.arg, between.view);
  Parameters read = written;
  pack(read, out.arg, out.view);
  LaunchConfig config{.grid = {kBlocks, 1, 1}, .block = {32, 1, 1}};
  first.launch(config, written, stream);
  config.dependent = true;
  second.launch(config, read, stream);
  stream.synchronize();
  std::vector<std::uint32_t> got = download<std::uint32_t>(out.buffer);
  for (std::uint32_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], (kBlocks * 32 - 1 - i) * 3 + 1);
}

}  // namespace
}  // namespace tilewright
