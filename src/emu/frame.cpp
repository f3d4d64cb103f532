// SPDX-License-Identifier: Apache-2.0
// New call frames: special registers and addresses of variables appear as registers.
#include "emu/grid.h"
#include "emu/schedule.h"
#include "emu/special.h"

#include <algorithm>
#include <bit>

namespace tilewright::emu::detail {

namespace {

std::uint64_t hidden_value(const Warp& warp, const Frame& frame, const HiddenRegister& h,
                           unsigned lane) {
  const Block& block = *warp.block;
  const std::uint64_t rank = std::uint64_t{block.rank} << kRankShift;
  switch (h.kind) {
    case Hidden::special:
      return special_value(warp, h.index, h.component, lane);
    case Hidden::shared_symbol:
      return rank + kSharedBase +
             static_cast<std::uint64_t>(block.grid->entry->shared.at[h.index] + h.value);
    case Hidden::dynamic_shared:
      return rank + kSharedBase + block.grid->dynamic_offset + static_cast<std::uint64_t>(h.value);
    case Hidden::local_symbol:
      return kLocalBase + frame.local + static_cast<std::uint64_t>(h.value);
  }
  return 0;
}

void set_lane(std::byte* base, const Slot& slot, unsigned lane, std::uint64_t value) {
  std::byte* at = base + slot.value;
  if (slot.cls == Class::b64) {
    reinterpret_cast<std::uint64_t*>(at)[lane] = value;
  } else if (slot.cls == Class::b32) {
    reinterpret_cast<std::uint32_t*>(at)[lane] = static_cast<std::uint32_t>(value);
  } else {
    auto& word = *reinterpret_cast<std::uint32_t*>(at);
    word = (word & ~(1U << lane)) | static_cast<std::uint32_t>(value & 1) << lane;
  }
  *reinterpret_cast<std::uint32_t*>(base + slot.defined) |= 1U << lane;
}

std::uint32_t end_of(const Code& code, const Frame& f) {
  return f.base + code.functions[f.function].frame_bytes;
}

bool in_use(const Warp& warp, std::uint32_t index) {
  for (std::size_t i = 0; i < warp.splits.size(); ++i) {
    if (i == warp.current) continue;
    for (std::uint32_t f = warp.splits[i].frame; f != kNoFrame; f = warp.frames[f].parent) {
      if (f == index) return true;
    }
  }
  return false;
}

/// The lanes of a warp share the bytes of a frame. Lanes in different functions must not: registers
/// of different widths would overlap. Returns where frames of other functions end, or 0.
std::uint32_t end_of_foreign(const Warp& warp, const Frame& frame) {
  const Code& code = *warp.block->grid->code;
  std::uint32_t end = 0;
  for (std::size_t i = 0; i < warp.splits.size(); ++i) {
    if (i == warp.current) continue;
    bool overlaps = false;
    std::uint32_t f = warp.splits[i].frame;
    const std::uint32_t top = end_of(code, warp.frames[f]);
    for (; f != kNoFrame; f = warp.frames[f].parent) {
      const Frame& other = warp.frames[f];
      const bool same = other.base == frame.base && other.function == frame.function;
      overlaps |= !same && other.base < end_of(code, frame) && frame.base < end_of(code, other);
    }
    if (overlaps) end = std::max(end, top);
  }
  return end;
}

}  // namespace

void enter_function(Warp& warp, std::uint32_t index, std::uint32_t mask) {
  Frame& frame = warp.frames[index];
  const Code& code = *warp.block->grid->code;
  const FunctionCode& fc = code.functions[frame.function];
  if (frame.parent != kNoFrame) {
    const Frame& parent = warp.frames[frame.parent];
    frame.local = parent.local + code.functions[parent.function].local_bytes + parent.allocated;
    frame.allocated = 0;
    if (!in_use(warp, index)) {
      frame.base = end_of(code, parent);
      while (const std::uint32_t end = end_of_foreign(warp, frame))
        frame.base = end;
    }
  }
  warp.stack.grow(frame.base + fc.frame_bytes + 128);
  warp.local.resize(std::max<std::size_t>(warp.local.size(), (frame.local + fc.local_bytes) / 4));
  std::byte* base = warp.stack.data() + frame.base;
  for (const std::uint32_t line : fc.defined_lines) {
    auto* masks = reinterpret_cast<std::uint32_t*>(base + line);
    for (int i = 0; i < 32; ++i)
      masks[i] &= ~mask;
  }
  for (const HiddenRegister& h : fc.hidden) {
    for (std::uint32_t left = mask; left != 0; left &= left - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(left));
      set_lane(base, h.slot, lane, hidden_value(warp, frame, h, lane));
    }
  }
  const std::uint32_t first = frame.local / 4;
  for (std::uint32_t row = first; row < first + fc.local_bytes / 4; ++row) {
    for (auto& init : warp.local[row].init)
      init &= ~mask;
  }
}

}  // namespace tilewright::emu::detail
