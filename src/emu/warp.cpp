// SPDX-License-Identifier: Apache-2.0
// Splits of a warp: dividing, merging, call frames, and the register stack.
#include "emu/warp.h"

#include <cstring>

namespace tilewright::emu::detail {

void RegisterStack::grow(std::size_t bytes) {
  if (bytes <= size_) return;
  bytes = bytes + bytes / 2;
  std::vector<std::byte> fresh(bytes + 127);
  const auto at = reinterpret_cast<std::uintptr_t>(fresh.data());
  std::byte* aligned = fresh.data() + (128 - at % 128) % 128;
  if (size_ != 0) std::memcpy(aligned, data_, size_);
  storage_ = std::move(fresh);
  data_ = aligned;
  size_ = bytes;
}

std::uint32_t enter_frame(Warp& warp, std::uint32_t parent, std::uint32_t return_pc,
                          std::uint32_t function, const OpInfo* call) {
  for (std::uint32_t i = 0; i < warp.frames.size(); ++i) {
    const Frame& f = warp.frames[i];
    if (f.parent == parent && f.return_pc == return_pc && f.function == function &&
        f.call == call) {
      return i;
    }
  }
  Frame f;
  f.parent = parent;
  f.return_pc = return_pc;
  f.function = function;
  f.call = call;
  f.depth = parent == kNoFrame ? 0 : warp.frames[parent].depth + 1;
  warp.frames.push_back(f);
  return static_cast<std::uint32_t>(warp.frames.size() - 1);
}

bool merge_splits(Warp& warp) {
  bool merged = false;
  for (std::size_t i = 0; i < warp.splits.size(); ++i) {
    Split& a = warp.splits[i];
    if (a.wait != Wait::none || a.resumed) continue;
    for (std::size_t j = warp.splits.size(); j-- > i + 1;) {
      Split& b = warp.splits[j];
      if (b.wait != Wait::none || b.resumed || b.pc != a.pc || b.frame != a.frame) continue;
      a.mask |= b.mask;
      a.branches = std::max(a.branches, b.branches);
      warp.splits.erase(warp.splits.begin() + static_cast<std::ptrdiff_t>(j));
      merged = true;
    }
  }
  return merged;
}

std::size_t divide(Warp& warp, std::size_t index, std::uint32_t mask) {
  Split part = warp.splits[index];
  part.mask = mask;
  warp.splits[index].mask &= ~mask;
  warp.splits.push_back(part);
  return warp.splits.size() - 1;
}

}  // namespace tilewright::emu::detail
