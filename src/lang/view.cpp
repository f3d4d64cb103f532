// SPDX-License-Identifier: Apache-2.0
// Sizes, extents and text of host-side tensor descriptions.
#include "tilewright/view.h"

#include <algorithm>
#include <limits>

namespace tilewright {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::string list_text(std::span<const std::int64_t> numbers) {
  std::string text = "[";
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    text += (i == 0 ? "" : ",") + std::to_string(numbers[i]);
  }
  return text + "]";
}

/// Offsets in elements of the lowest and highest element; false if they leave 64 bits.
bool offsets(const View& view, std::int64_t& low, std::int64_t& high) {
  low = high = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(view.rank); ++i) {
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(view.shape[i] - 1, view.stride[i], &reach)) return false;
    std::int64_t& end = reach < 0 ? low : high;
    if (__builtin_add_overflow(end, reach, &end)) return false;
  }
  return true;
}

/// The strides of a view without elements, whatever a library gives them: NumPy's are 0.
void set_row_major(View& view) {
  std::int64_t step = 1;
  for (auto i = static_cast<std::size_t>(view.rank); i-- > 0;) {
    view.stride[i] = step;
    if (__builtin_mul_overflow(step, std::max<std::int64_t>(view.shape[i], 1), &step)) step = 1;
  }
}

}  // namespace

int storage_bits(Type type) {
  if (type == Type::pred || type == Type::e2m3 || type == Type::e3m2) return 8;
  return bits(type);
}

View make_view(std::uint64_t address, Type type, std::span<const std::int64_t> shape,
               std::span<const std::int64_t> stride, SourceLoc at) {
  if (shape.size() > static_cast<std::size_t>(kMaxViewRank)) {
    throw Error(ErrorKind::user,
                "view: rank " + std::to_string(shape.size()) + " exceeds the largest rank of " +
                    std::to_string(kMaxViewRank) + "; fold modes",
                at);
  }
  TW_ASSERT(shape.size() == stride.size(), "a view has one stride for each extent");
  View view{address, type, static_cast<int>(shape.size())};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0) {
      throw Error(ErrorKind::user, "view: negative extent in shape " + list_text(shape), at);
    }
    view.shape[i] = shape[i];
    view.stride[i] = stride[i];
  }
  if (size(view) == 0) {
    set_row_major(view);
    return view;
  }
  std::int64_t low = 0;
  std::int64_t high = 0;
  if (!offsets(view, low, high) || high > kMost / 16 || low < -(kMost / 16)) {
    throw Error(ErrorKind::user,
                "view: shape " + list_text(shape) + " with strides " + list_text(stride) +
                    " reaches beyond 63-bit addresses",
                at);
  }
  return view;
}

View make_view(std::uint64_t address, Type type, std::span<const std::int64_t> shape,
               SourceLoc at) {
  std::array<std::int64_t, kMaxViewRank> stride{};
  std::int64_t step = 1;
  bool fits = true;
  for (std::size_t i = std::min<std::size_t>(shape.size(), kMaxViewRank); i-- > 0;) {
    stride[i] = step;
    fits = !__builtin_mul_overflow(step, std::max<std::int64_t>(shape[i], 1), &step) && fits;
  }
  if (!fits) {
    throw Error(ErrorKind::user,
                "view: shape " + list_text(shape) + " has more than 2^63 - 1 elements", at);
  }
  std::size_t used = std::min<std::size_t>(shape.size(), kMaxViewRank);
  if (used < shape.size()) return make_view(address, type, shape, shape, at);  // reports the rank
  return make_view(address, type, shape, std::span(stride.data(), used), at);
}

std::int64_t size(const View& view) {
  std::int64_t product = 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(view.rank); ++i) {
    if (view.shape[i] == 0) return 0;
    if (__builtin_mul_overflow(product, view.shape[i], &product)) return kMost;  // zero strides
  }
  return product;
}

std::int64_t size_bytes(const View& view) {
  std::int64_t total = 0;
  if (__builtin_mul_overflow(size(view), std::int64_t{storage_bits(view.type)}, &total)) {
    return kMost / 8;
  }
  return total / 8 + (total % 8 != 0 ? 1 : 0);
}

bool is_row_major(const View& view) {
  std::int64_t step = 1;
  for (std::size_t i = static_cast<std::size_t>(view.rank); i-- > 0;) {
    if (view.shape[i] != 1 && view.stride[i] != step && size(view) != 0) return false;
    step *= view.shape[i];
  }
  return true;
}

ByteRange byte_range(const View& view) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  if (size(view) == 0 || !offsets(view, low, high)) return {view.address, view.address};
  const std::int64_t width = storage_bits(view.type);
  // Floor and ceiling division by 8, so that a half-byte type covers the bytes it shares.
  const std::int64_t begin = low * width >> 3;
  const std::int64_t end = ((high + 1) * width + 7) >> 3;
  return {view.address + static_cast<std::uint64_t>(begin),
          view.address + static_cast<std::uint64_t>(end)};
}

std::string to_string(const View& view) {
  const std::size_t rank = static_cast<std::size_t>(view.rank);
  std::string text{name(view.type)};
  text += list_text(std::span(view.shape.data(), rank));
  if (!is_row_major(view)) text += ":" + list_text(std::span(view.stride.data(), rank));
  return text;
}

}  // namespace tilewright
