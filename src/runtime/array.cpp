// SPDX-License-Identifier: Apache-2.0
// Making host tensors and reading their values.
#include "tilewright/array.h"

#include "runtime/host_memory.h"
#include "tilewright/view.h"

#include <cstring>
#include <limits>
#include <utility>

namespace tilewright {
namespace {

/// The bits of element `index`, in the low bits.
std::uint64_t load(const Array& array, std::int64_t index, int width) {
  if (width == 4) {
    const auto byte = static_cast<unsigned>(array.bytes[static_cast<std::size_t>(index / 2)]);
    return index % 2 == 0 ? byte & 15U : byte >> 4;
  }
  std::uint64_t raw = 0;
  const std::size_t stride = static_cast<std::size_t>(width / 8);
  std::memcpy(&raw, array.bytes.data() + static_cast<std::size_t>(index) * stride, stride);
  return raw;
}

void store(Array& array, std::int64_t index, int width, std::uint64_t raw) {
  if (width == 4) {
    std::byte& byte = array.bytes[static_cast<std::size_t>(index / 2)];
    const auto old = static_cast<unsigned>(byte);
    const auto low = static_cast<unsigned>(raw);
    byte = static_cast<std::byte>(index % 2 == 0 ? (old & 0xf0U) | low : (old & 15U) | low << 4);
    return;
  }
  const std::size_t stride = static_cast<std::size_t>(width / 8);
  std::memcpy(array.bytes.data() + static_cast<std::size_t>(index) * stride, &raw, stride);
}

int scalar_bits(Type type) {
  const int width = storage_bits(type);
  if (width == 0 || width > 64 || is_packed(type)) {
    throw Error(ErrorKind::user, "array: type " + std::string(name(type)) +
                                     " has no numeric value; use a scalar type of up to 64 bits");
  }
  return width;
}

}  // namespace

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  }
  return text + "]";
}

std::int64_t element_count(std::span<const std::int64_t> shape, SourceLoc at) {
  std::int64_t product = 1;
  bool fits = true;
  bool empty = false;
  for (std::int64_t extent : shape) {
    if (extent < 0) {
      throw Error(ErrorKind::user, "array: negative extent in shape " + shape_text(shape), at);
    }
    empty = empty || extent == 0;
    fits = !__builtin_mul_overflow(product, extent, &product) && fits;
  }
  if (empty) return 0;
  if (!fits) {
    throw Error(ErrorKind::user,
                "array: shape " + shape_text(shape) + " has more than 2^63 - 1 elements", at);
  }
  return product;
}

std::int64_t storage_bytes(Type type, std::span<const std::int64_t> shape, SourceLoc at) {
  const std::int64_t count = element_count(shape, at);
  std::int64_t total = 0;
  if (__builtin_mul_overflow(count, std::int64_t{storage_bits(type)}, &total)) {
    throw Error(
        ErrorKind::user,
        "array: " + std::string(name(type)) + shape_text(shape) + " has more than 2^60 - 1 bytes",
        at);
  }
  return total / 8 + (total % 8 != 0 ? 1 : 0);
}

Array make_array(std::string name, Type type, std::vector<std::int64_t> shape, SourceLoc at) {
  const std::int64_t total = storage_bytes(type, shape, at);
  Array array{std::move(name), type, std::move(shape), {}};
  require_host_bytes(total, "array: " + to_string(array), at);
  array.bytes.resize(static_cast<std::size_t>(total));
  return array;
}

Array make_array(std::string name, Type type, std::vector<std::int64_t> shape,
                 std::span<const double> values, SourceLoc at) {
  const std::int64_t count = element_count(shape, at);
  if (count != static_cast<std::int64_t>(values.size())) {
    throw Error(ErrorKind::user,
                "array: shape " + shape_text(shape) + " needs " + std::to_string(count) +
                    " values but " + std::to_string(values.size()) + " are given",
                at);
  }
  Array array = make_array(std::move(name), type, std::move(shape), at);
  const int width = scalar_bits(type);
  for (std::int64_t i = 0; i < count; ++i) {
    store(array, i, width, encode(type, values[static_cast<std::size_t>(i)]));
  }
  return array;
}

std::vector<double> to_doubles(const Array& array) {
  const int width = scalar_bits(array.type);
  const std::int64_t count = element_count(array.shape);
  require_host_bytes(count * std::int64_t{sizeof(double)}, "array: f64 copy of " + to_string(array),
                     SourceLoc::here());
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    values[static_cast<std::size_t>(i)] = decode(array.type, load(array, i, width));
  }
  return values;
}

std::string to_string(const Array& array) {
  return array.name + ": " + std::string(name(array.type)) + shape_text(array.shape);
}

}  // namespace tilewright
