// SPDX-License-Identifier: Apache-2.0
// Comparing memory on the device.
#include "tune/repeats.h"

#include "device_fixture.h"

#include <array>

namespace {

namespace tw = tilewright;
using tw::test::open_test_device;

/// In how many words, or bytes, two pieces of `size_bytes` differ whose bytes `at` are not equal.
std::uint64_t differing(std::int64_t size_bytes, const std::vector<std::size_t>& at) {
  const tw::Device device = open_test_device();
  const tw::Stream stream(device);
  std::vector<std::byte> bytes(static_cast<std::size_t>(size_bytes), std::byte{7});
  const tw::Buffer a = tw::upload<std::byte>(device, bytes);
  for (std::size_t i : at)
    bytes[i] = std::byte{8};
  const tw::Buffer b = tw::upload<std::byte>(device, bytes), count(device, 8);
  count.fill(std::byte{0});
  const tw::PreparedLaunch compare =
      tw::tune::prepare_comparison(device, a.address(), b.address(), size_bytes, count.address());
  compare.launch(stream);
  compare.launch(stream);
  stream.synchronize();
  return tw::download<std::uint64_t>(count).front();
}

TEST(Repeats, ComparisonsAddUpWhatDiffers) {
  EXPECT_EQ(differing(4096, {}), 0U);
  EXPECT_EQ(differing(4096, {0, 3, 4, 4095}), 2U * 3);  // words 0, 1 and 1023
  EXPECT_EQ(differing(1027, {0, 3, 1026}), 2U * 3);     // bytes
  EXPECT_EQ(differing(1, {0}), 2U);
}

/// Launches write what a word holds that is not put back; `steps` lets it grow.
tw::tune::Repeats repeated(bool steps, std::int64_t times) {
  const tw::Device device = open_test_device();
  const tw::Stream stream(device);
  const std::array<std::uint64_t, 2> zeros{}, other{1, 0};
  const tw::Buffer out = tw::upload<std::uint64_t>(device, zeros),
                   kept = tw::upload<std::uint64_t>(device, zeros),
                   unlike = tw::upload<std::uint64_t>(device, other);
  const tw::PreparedLaunch grow = tw::tune::prepare_comparison(
      device, unlike.address(), unlike.address() + 8, 8, kept.address());
  const std::array written{tw::tune::Session::Place{"out", out.address(), 16},
                           tw::tune::Session::Place{"none", 0, 0}};
  return tw::tune::repeat(
      stream, written,
      [&] {
        tw::copy_on_device(out.address() + 8, kept.address(), 8, stream);
        if (steps) grow.launch(stream);
      },
      times);
}

TEST(Repeats, CountsLaunchesThatDifferFromTheFirst) {
  for (std::int64_t times : {0, 3, 100, 203}) {  // with and without graphs
    const tw::tune::Repeats same = repeated(false, times), different = repeated(true, times);
    EXPECT_EQ(same.launches, times);
    EXPECT_TRUE(same.differences.empty()) << times;
    ASSERT_EQ(different.differences.size(), times > 0 ? 1U : 0U) << times;
    if (times == 0) continue;
    EXPECT_EQ(different.differences[0].output, "out");
    EXPECT_EQ(different.differences[0].count, static_cast<std::uint64_t>(times));
  }
}

}  // namespace
