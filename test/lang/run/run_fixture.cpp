// SPDX-License-Identifier: Apache-2.0
// Arrays of raw elements in device memory.
#include "run_fixture.h"

#include <cstring>

namespace tilewright::test {

Data::Data(Type element, std::vector<std::int64_t> extents)
    : type(element), shape(std::move(extents)) {
  std::int64_t count = 1;
  for (std::int64_t extent : shape)
    count *= extent;
  bits.assign(static_cast<std::size_t>(count), 0);
}

Data vector_of(Type type, std::vector<std::uint64_t> elements) {
  Data data(type, {static_cast<std::int64_t>(elements.size())});
  data.bits = std::move(elements);
  return data;
}

Buffer RunTest::uploaded(const Data& data) const {
  auto width = static_cast<std::size_t>(bytes(data.type));
  std::vector<std::byte> raw(data.bits.size() * width);
  for (std::size_t i = 0; i < data.bits.size(); ++i)
    std::memcpy(raw.data() + i * width, &data.bits[i], width);
  return upload(device, std::span<const std::byte>(raw));
}

View RunTest::view_of(const Data& data, const Buffer& buffer) {
  return make_view(buffer.address(), data.type, data.shape);
}

void RunTest::fetch(Data& data, const Buffer& buffer) {
  auto width = static_cast<std::size_t>(bytes(data.type));
  auto raw = download<std::byte>(buffer);
  for (std::size_t i = 0; i < data.bits.size(); ++i) {
    data.bits[i] = 0;
    std::memcpy(&data.bits[i], raw.data() + i * width, width);
  }
}

}  // namespace tilewright::test
