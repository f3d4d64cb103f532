// SPDX-License-Identifier: Apache-2.0
// Assigns offsets to the shared variables that an entry reaches, and marks the free bytes between
// them.
#include "emu/shared_layout.h"

#include "emu/code.h"
#include "emu/grid.h"

#include <algorithm>

namespace tilewright::emu::detail {

namespace {

constexpr std::int64_t kFree = 128;               // between variables: the banks stay as they are
constexpr std::int64_t kMostFree = 1024 * kFree;  // of an entry
constexpr std::int64_t kMostMarked = std::int64_t{1} << 20;  // more does not fit on any target
constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;   // of a variable, far above any limit

std::int64_t align_up(std::int64_t value, std::int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

void add(Code& code, const ptx::Variable& v, std::uint32_t function) {
  if (v.space != ptx::Space::shared) return;
  const bool dynamic = !v.extents.empty() && v.extents[0] == 0;
  const std::int64_t bytes =
      dynamic ? 0 : std::clamp<std::int64_t>(ptx::size_bytes(v), 0, kMostBytes);
  code.shared.push_back(
      {v.name, function, bytes, std::max<std::int64_t>(ptx::alignment_bytes(v), 1), dynamic});
}

/// By variable: whether a function that the entry reaches has it, or uses it if it is the module's.
std::vector<bool> used_by(const Code& code, const FunctionCode& entry) {
  std::vector<bool> used(code.shared.size()), seen(code.functions.size());
  std::vector<const FunctionCode*> left;
  auto reach = [&](const FunctionCode& f) {
    const auto i = static_cast<std::size_t>(&f - code.functions.data());
    if (seen[i]) return;
    seen[i] = true;
    for (std::size_t v = 0; v < used.size(); ++v)
      used[v] = used[v] || code.shared[v].function == i;
    left.push_back(&f);
  };
  reach(entry);
  while (!left.empty()) {
    const FunctionCode& f = *left.back();
    left.pop_back();
    for (const std::uint32_t v : f.shared_used)
      used[v] = true;
    for (const std::uint32_t callee : f.calls) {
      if (callee < code.functions.size()) reach(code.functions[callee]);
    }
    if (!f.calls_unknown) continue;
    for (const FunctionCode& any : code.functions) {
      if (!any.source->entry) reach(any);
    }
  }
  return used;
}

void mark_gaps(const Code& code, SharedLayout& layout) {
  if (layout.end == 0 || layout.bytes > kMostMarked) return;
  layout.gaps.assign(static_cast<std::size_t>(layout.dynamic_at + 63) / 64, 0);
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (std::size_t i = 0; i < layout.at.size(); ++i) {
    if (layout.at[i] >= 0) ranges.emplace_back(layout.at[i], layout.at[i] + code.shared[i].bytes);
  }
  ranges.emplace_back(layout.dynamic_at, layout.dynamic_at);
  std::int64_t at = 0;  // they come in order
  for (const auto& [begin, end] : ranges) {
    for (; at < begin; ++at)
      layout.gaps[static_cast<std::size_t>(at / 64)] |= std::uint64_t{1} << (at % 64);
    at = std::max(at, end);
  }
}

SharedLayout layout_of(const Code& code, const FunctionCode& entry) {
  SharedLayout layout;
  layout.at.assign(code.shared.size(), -1);
  const std::vector<bool> used = used_by(code, entry);
  const auto base = static_cast<std::int64_t>(kSharedBase);
  std::int64_t free = 0, dynamic_alignment = 16;
  for (std::size_t i = 0; i < code.shared.size(); ++i) {
    const SharedVariable& v = code.shared[i];
    if (!used[i]) continue;
    if (v.dynamic) {
      dynamic_alignment = std::max(dynamic_alignment, v.alignment);
      continue;
    }
    const std::int64_t begin = align_up(layout.bytes, v.alignment);
    layout.at[i] = align_up(begin + free, v.alignment);
    layout.bytes = begin + v.bytes;
    layout.end = layout.at[i] + v.bytes;
    free = std::min(layout.at[i] - begin + kFree, kMostFree);
  }
  // Dynamic shared memory begins at the strictest alignment that any variable may ask for there.
  layout.dynamic_bytes_before = align_up(base + layout.bytes, dynamic_alignment) - base;
  layout.dynamic_at = align_up(base + layout.bytes + free, dynamic_alignment) - base;
  layout.dynamic_at =
      std::max(layout.dynamic_at, align_up(base + layout.end, dynamic_alignment) - base);
  mark_gaps(code, layout);
  return layout;
}

}  // namespace

bool SharedLayout::in_gap(std::uint64_t offset, std::uint64_t count) const {
  const std::uint64_t stop = std::min<std::uint64_t>(offset + count, gaps.size() * 64);
  while (offset < stop) {
    const std::uint64_t bits = std::min<std::uint64_t>(64 - offset % 64, stop - offset);
    const std::uint64_t word = gaps[offset / 64] >> (offset % 64);
    if ((bits == 64 ? word : word & ((std::uint64_t{1} << bits) - 1)) != 0) return true;
    offset += bits;
  }
  return false;
}

void find_shared_variables(Code& code) {
  for (const auto& v : code.module.variables)
    add(code, v, kNoFunction);
  for (std::size_t i = 0; i < code.functions.size(); ++i) {
    for (const auto& v : code.functions[i].source->variables)
      add(code, v, static_cast<std::uint32_t>(i));
  }
}

const SharedVariable* shared_variable(const Code& code, const FunctionCode& function,
                                      std::string_view name) {
  const auto own = static_cast<std::uint32_t>(&function - code.functions.data());
  const SharedVariable* found = nullptr;
  for (const SharedVariable& v : code.shared) {
    if (v.name != name) continue;
    if (v.function == own) return &v;
    if (v.function == kNoFunction) found = &v;
  }
  return found;
}

void lay_out_shared(Code& code) {
  for (FunctionCode& f : code.functions) {
    if (f.source->entry) f.shared = layout_of(code, f);
  }
}

}  // namespace tilewright::emu::detail
