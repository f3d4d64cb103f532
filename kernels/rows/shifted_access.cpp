// SPDX-License-Identifier: Apache-2.0
// Aligned words, and what of them an address that is not aligned means.
#include "kernels/rows/shifted_access.h"

#include "kernels/rows/rows.h"
#include "tilewright/bit.h"

#include <vector>

namespace tilewright::rows {
namespace {

constexpr int kWords = kShiftedBytes / 4;

Value before(const Value& address) { return address.to(u32) & (kShiftedBytes - 1); }

/// From word `distance` on where `moves`.
std::vector<Value> moved(const std::vector<Value>& words, int distance, const Value& moves) {
  std::vector<Value> result;
  for (std::size_t i = 0; i + static_cast<std::size_t>(distance) < words.size(); ++i)
    result.push_back(select(moves, words[i + static_cast<std::size_t>(distance)], words[i]));
  return result;
}

}  // namespace

std::int64_t shifted_columns(std::int64_t columns, Type type) {
  const int elems = shifted_elems(type);
  return ceil_div(columns + elems - 1, elems) * elems;
}

Value ReadMemory::holds_words(const Value& address) const {
  const Value word = address - before(address).to(u64);
  return word >= first && word + 2 * kShiftedBytes <= end;
}

Fragment load_shifted(Type type, const Value& address, const Value& active) {
  const Value offset = before(address);
  const Value word = address - offset.to(u64);
  const Fragment low = load_if(active, aligned_access(b32, word), kWords);
  const Fragment high =
      load_if(active && offset != 0, aligned_access(b32, word + kShiftedBytes), kWords);
  std::vector<Value> words;
  for (const Fragment& each : {low, high}) {
    for (int i = 0; i < kWords; ++i)
      words.push_back(each[i].get().bitcast(u32));
  }
  words = moved(moved(words, 2, (offset & 8) != 0), 1, (offset & 4) != 0);
  const Value bits = (offset & 3) << 3;
  Fragment shifted(b32, kWords);
  for (int i = 0; i < kWords; ++i) {
    const auto at = static_cast<std::size_t>(i);
    shifted[i] = shf_right(words[at], words[at + 1], bits).bitcast(b32);
  }
  return shifted.recast(type);
}

Value elems_before(Type type, const Value& address) {
  return (before(address) / bytes(type)).to(s32);
}

Element aligned_access(Type type, const Value& address) {
  return Tensor(type, MemorySpace::global, address.assume({kShiftedBytes}),
                Layout(Shape{shifted_elems(type)}), kShiftedBytes)(0);
}

}  // namespace tilewright::rows
