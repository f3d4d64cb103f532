// SPDX-License-Identifier: Apache-2.0
// Operators run on copies of host memory: what comes back, and what the emulator sees.
#include "runtime/host_call.h"

#include "tilewright/compile.h"
#include "tilewright/stream.h"
#include "tilewright/trace.h"

#include <array>
#include <cstdint>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

constexpr std::array kF32{f32};
constexpr std::array<TensorSpec, 1> kTensors{
    {{.name = "y", .role = Role::output, .shape = "N", .types = kF32}}};
constexpr std::array<OptionSpec, 1> kOptions{
    {{.name = "from", .type = OptionType::integer, .least = 0}}};

/// y[0] = y[from], after y[2] was written: an output has nothing to read elsewhere.
void launch(const Device& device, const Stream& stream, const Arguments& arguments) {
  const View& view = arguments.tensor("y");
  const TensorArg arg = tensor_arg(view);
  auto body = [&](const Tensor& y) {
    y(2) = 5.0f;
    y(0) = y(static_cast<int>(arguments.integer("from"))).load();
  };
  Parameters parameters;
  pack(parameters, arg, view);
  compile(device,
          trace({.name = "first", .target = device.target(), .block = {1, 1, 1}}, body, arg))
      .launch({.grid = {1, 1, 1}, .block = {1, 1, 1}}, parameters, stream);
}

constexpr Operator kFirst{.schema = {.name = "first", .tensors = kTensors, .options = kOptions},
                          .launch = launch};

std::vector<emu::Diagnostic> run(const char* from, std::span<float> values, std::int64_t stride) {
  const Device device = Device::open("emu:sm_90a");
  Arguments arguments(kFirst.schema);
  arguments.set_option("from", from);
  const std::array<std::int64_t, 1> shape{4}, strides{stride};
  const View view = make_view(reinterpret_cast<std::uintptr_t>(values.data()), f32, shape, strides);
  const std::array tensors{detail::HostTensor{"y", Role::output, view}};
  return detail::run_on_copies(device, kFirst, arguments, tensors);
}

TEST(HostCall, KeepsWhatAnOperatorDoesNotWrite) {
  std::array<float, 7> values{1, 2, 3, 4, 6, 7, 8};
  EXPECT_TRUE(run("2", values, 1).empty());
  EXPECT_EQ(values, (std::array<float, 7>{5, 2, 5, 4, 6, 7, 8}));
  EXPECT_TRUE(run("2", values, 2).empty());
  EXPECT_EQ(values, (std::array<float, 7>{5, 2, 5, 4, 5, 7, 8}));
}

TEST(HostCall, ReportsReadingWhatWasInAnOutputBefore) {
  std::array<float, 7> values{1, 2, 3, 4, 6, 7, 8};
  for (std::int64_t stride : {1, 2}) {
    const std::vector<emu::Diagnostic> found = run("3", values, stride);
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found[0].kind, emu::Kind::uninitialized_read);
  }
}

}  // namespace
}  // namespace tilewright
