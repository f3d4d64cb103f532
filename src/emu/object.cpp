// SPDX-License-Identifier: Apache-2.0
// Names of spaces and memory objects for reports.
#include "emu/object.h"

namespace tilewright::emu::detail {

std::string space_name(Space space) {
  switch (space) {
    case Space::generic:
      return "generic";
    case Space::global:
      return "global";
    case Space::shared:
      return "shared::cta";
    case Space::shared_cluster:
      return "shared::cluster";
    case Space::local:
      return "local";
    case Space::param:
      return "param";
    case Space::const_:
      return "const";
  }
  return "";
}

std::string describe_address(const Exec& x, const ShadowTarget& target, std::uint64_t address) {
  static_cast<void>(x);
  if (target.owner == nullptr) return "global address " + hex(address);
  return "shared address " + hex(address & 0xffffff);
}

std::string shared_object(const Grid& grid, std::uint32_t address) {
  const std::int64_t offset =
      static_cast<std::int64_t>(address & 0xffffff) - static_cast<std::int64_t>(kSharedBase);
  if (offset >= grid.dynamic_offset && grid.launch.dynamic_smem_bytes > 0) {
    return "dynamic shared memory + " + std::to_string(offset - grid.dynamic_offset);
  }
  const SharedVariable* best = nullptr;
  std::int64_t at = -1;
  for (std::size_t i = 0; i < grid.code->shared.size(); ++i) {
    const std::int64_t begin = grid.entry->shared.at[i];
    if (begin < 0 || begin > offset || begin <= at) continue;
    best = &grid.code->shared[i];
    at = begin;
  }
  if (best == nullptr) return "";
  if (offset - at >= best->bytes) {
    return std::to_string(offset - at - best->bytes) + " bytes past the end of variable " +
           best->name + " of " + std::to_string(best->bytes) + " bytes";
  }
  return "variable " + best->name + " + " + std::to_string(offset - at);
}

std::string global_object(const Memory& memory, std::uint64_t address) {
  const Allocation* a = memory.at_or_below(address);
  if (a == nullptr) return "";
  const std::uint64_t offset = address - a->base;
  const std::string what = "allocation of " + std::to_string(a->size) + " bytes" +
                           (a->label.empty() ? "" : ", " + a->label + ",");
  if (offset < static_cast<std::uint64_t>(a->size)) return what + " + " + std::to_string(offset);
  return std::to_string(offset - static_cast<std::uint64_t>(a->size)) +
         " bytes past the end of the " + what.substr(0, what.size() - (a->label.empty() ? 0 : 1));
}

std::string object_name(const Exec& x, const ShadowTarget& target, std::uint64_t address) {
  if (target.owner != nullptr) return shared_object(*x.grid, static_cast<std::uint32_t>(address));
  return global_object(*x.run->memory, address);
}

}  // namespace tilewright::emu::detail
