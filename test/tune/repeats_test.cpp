// SPDX-License-Identifier: Apache-2.0
// Comparing memory on the device.
#include "tune/repeats.h"

#include "device_fixture.h"

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

}  // namespace
