// SPDX-License-Identifier: Apache-2.0
// Quotients of block numbers by divisors of the host, around their multiples and at the ends.
#include "kernels/rows/grid_division.h"

#include "device_fixture.h"
#include "tilewright/array.h"
#include "tilewright/compile.h"
#include "tilewright/tensor.h"
#include "tilewright/thread.h"

#include <array>
#include <optional>
#include <span>
#include <vector>

namespace tilewright {
namespace {

constexpr std::int64_t kMost = 2'147'483'647;
constexpr int kThreads = 16;

class GridDivision : public test::DeviceTest {
 protected:
  GridDivision() {
    const TensorArg vector = tensor_arg(numbers_);
    auto body = [](const Tensor& n, const Tensor& quotient, const Tensor& remainder,
                   const Value& divisor) {
      const rows::Divided divided = rows::divided(n(thread_idx().x), divisor);
      quotient(thread_idx().x) = divided.quotient;
      remainder(thread_idx().x) = divided.remainder;
    };
    kernel_ = compile(
        device, trace({.name = "divide", .target = device.target(), .block = {kThreads, 1, 1}},
                      body, vector, vector, vector, rows::divisor_arg()));
  }

  void check(std::int64_t divisor) {
    std::vector<std::int32_t> n;
    auto add = [&](std::int64_t number) {
      if (number >= 0 && number <= kMost) n.push_back(static_cast<std::int32_t>(number));
    };
    for (std::int64_t near : {std::int64_t{0}, divisor, kMost / divisor / 2 * divisor,
                              kMost / divisor * divisor, kMost}) {
      for (std::int64_t off : {-1, 0, 1})
        add(near + off);
    }
    n.resize(kThreads, 0);
    memory_.upload(std::as_bytes(std::span(n)));
    Parameters parameters;
    for (const View& view : {numbers_, quotients_, remainders_})
      pack(parameters, tensor_arg(view), view);
    parameters.add(rows::divisor_parameter(divisor));
    kernel_->launch({.block = {kThreads}}, parameters, stream);
    stream.synchronize();
    const std::vector<std::int32_t> out = download<std::int32_t>(memory_);
    for (std::size_t i = 0; i < n.size(); ++i) {
      EXPECT_EQ(out[kThreads + i], n[i] / divisor) << n[i] << " / " << divisor;
      EXPECT_EQ(out[std::size_t{2} * kThreads + i], n[i] % divisor) << n[i] << " % " << divisor;
    }
  }

 private:
  View part(int index) const {
    return make_view(memory_.address() + static_cast<std::uint64_t>(index) * kThreads * 4, s32,
                     std::array<std::int64_t, 1>{kThreads});
  }

  Buffer memory_{device, std::int64_t{3} * kThreads * 4};
  View numbers_ = part(0), quotients_ = part(1), remainders_ = part(2);
  std::optional<Kernel> kernel_;
};

TEST_F(GridDivision, IsExactForAllBlocksOfAGrid) {
  for (std::int64_t divisor = 1; divisor <= 40; ++divisor)
    check(divisor);
  for (int log = 6; log < 31; ++log) {
    for (std::int64_t off : {-1, 0, 1})
      check((std::int64_t{1} << log) + off);
  }
  for (std::int64_t divisor : {std::int64_t{641}, std::int64_t{715827883}, kMost - 1, kMost})
    check(divisor);
}

}  // namespace
}  // namespace tilewright
