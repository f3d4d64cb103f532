// SPDX-License-Identifier: Apache-2.0
// Finds and checks the bytes behind an address.
#include "emu/access.h"

#include "emu/object.h"

#include <algorithm>
#include <bit>

namespace tilewright::emu::detail {

void report_undefined(Exec& x, std::uint32_t lanes, std::string_view use) {
  if (!x.checks(Kind::uninitialized_read)) return;
  report(x, {.kind = Kind::uninitialized_read,
             .lane = static_cast<unsigned>(std::countr_zero(lanes)),
             .message = "uses a register without a defined value as " + std::string(use),
             .range = {},
             .other = {}});
}

Addresses read_addresses(Exec& x, const Inst& in, int index) {
  Addresses out;
  out.mask = x.mask;
  const auto i = static_cast<std::size_t>(index);
  const Slot& slot = in.slot[in.info->start[i]];
  const auto offset = static_cast<std::uint64_t>(in.info->offset[i]);
  const std::uint32_t undefined = x.mask & ~x.defined(slot);
  if (undefined != 0) {
    report_undefined(x, undefined, "address");
    if (slot.in_frame) x.defined(slot) |= undefined;
  }
  if (slot.cls == Class::b64) {
    const auto* a = x.lanes<const std::uint64_t>(slot);
    for (unsigned l = 0; l < 32; ++l)
      out.at[l] = a[l] + offset;
  } else if (slot.cls == Class::b32) {
    const auto* a = x.lanes<const std::uint32_t>(slot);
    for (unsigned l = 0; l < 32; ++l)
      out.at[l] = std::uint32_t(a[l] + offset);
  }
  return out;
}

Space space_of(std::uint64_t address) {
  if (address >= kGlobalBase) return Space::global;
  switch (address / kWindowBytes * kWindowBytes) {
    case kSharedWindow:
      return Space::shared;
    case kLocalWindow:
      return Space::local;
    case kParamWindow:
      return Space::param;
    default:
      return Space::global;
  }
}

int split_by_space(const Addresses& generic, std::array<SpacePart, 5>& parts) {
  int count = 0;
  for (std::uint32_t left = generic.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t a = generic.at[lane];
    const Space space = space_of(a);
    int i = 0;
    while (i < count && parts[static_cast<unsigned>(i)].space != space)
      ++i;
    SpacePart& part = parts[static_cast<unsigned>(i)];
    if (i == count) {
      part.space = space;
      part.addresses.mask = 0;
      ++count;
    }
    part.addresses.mask |= 1U << lane;
    part.addresses.at[lane] = space == Space::global ? a : a % kWindowBytes;
  }
  return count;
}

namespace {

enum class Fault : std::uint8_t { none, outside, freed, misaligned, read_only, foreign };

Block* shared_owner(Exec& x, std::uint64_t address) {
  const auto rank = static_cast<std::size_t>(address >> kRankShift);
  const auto& blocks = x.block->cluster->blocks;
  return rank < blocks.size() ? blocks[rank] : nullptr;
}

Fault find_shared(Exec& x, Space space, std::uint64_t address, std::int64_t bytes, Located& out) {
  Block* owner = shared_owner(x, address);
  if (owner == nullptr) return Fault::outside;
  if (owner != x.block && (space == Space::shared || owner->done)) return Fault::foreign;
  const std::uint64_t offset = (address & 0xffffff) - kSharedBase;
  const auto size = static_cast<std::uint64_t>(x.grid->shared_bytes);
  if (offset >= size || size - offset < static_cast<std::uint64_t>(bytes)) return Fault::outside;
  if (x.grid->entry->shared.in_gap(offset, static_cast<std::uint64_t>(bytes))) {
    return Fault::outside;
  }
  out.data = owner->shared.data() + offset;
  out.init = owner->shared_init.data();
  out.init_bit = static_cast<std::int64_t>(offset);
  out.target = {owner->shadow.get(), offset / 4, address & ~std::uint64_t{3}, space, owner};
  out.shadowed = true;
  return Fault::none;
}

Fault find_global(Exec& x, std::uint64_t address, std::int64_t bytes, Purpose purpose,
                  Located& out) {
  Grid& grid = *x.grid;
  Allocation* a = grid.last_allocation;
  if (a == nullptr || !a->contains(address, bytes)) {
    a = x.run->memory->at_or_below(address);
    if (a == nullptr || !a->contains(address, bytes)) {
      return a != nullptr && a->freed && a->contains(address, 1) ? Fault::freed : Fault::outside;
    }
    grid.last_allocation = a;
  }
  if (a->freed) return Fault::freed;
  if (!a->members.empty()) return Fault::outside;  // only multimem reaches a multicast address
  if (purpose != Purpose::read && a->read_only) return Fault::read_only;
  out.allocation = a;
  const std::uint64_t in_page = (address - a->base) % kPageBytes;
  const bool race = race_checked(x);
  Page* page = nullptr;
  if (purpose == Purpose::read && !race) {
    page = x.run->memory->readable(*a, address);
  } else {
    page = &x.run->memory->writable(*a, address);
  }
  out.target.address = address & ~std::uint64_t{3};
  out.target.space = Space::global;
  out.target.owner = nullptr;
  out.shadowed = race && !a->read_only;
  if (page == nullptr) {
    out.data = nullptr;
    return Fault::none;
  }
  out.data = page->data.data() + in_page;
  out.init = page->init.data();
  out.init_bit = static_cast<std::int64_t>(in_page);
  if (out.shadowed) {
    out.target.map = &x.run->memory->shadow(*page);
    out.target.word = in_page / 4;
  }
  return Fault::none;
}

Fault find(Exec& x, Space space, std::uint64_t address, std::int64_t bytes, Purpose purpose,
           Located& out) {
  if (space == Space::shared || space == Space::shared_cluster) {
    return find_shared(x, space, address, bytes, out);
  }
  return find_global(x, address, bytes, purpose, out);
}

std::string outside_text(Exec& x, Space space, std::uint64_t address, std::int64_t bytes) {
  const std::string range = std::to_string(bytes) + " bytes at ";
  if (space == Space::shared || space == Space::shared_cluster) {
    const auto at = static_cast<std::uint32_t>(address);
    const std::string object = shared_object(*x.grid, at);
    return range + "shared address " + hex(address & 0xffffff) + ", outside the block's " +
           std::to_string(x.grid->declared_shared_bytes) + " bytes of shared memory" +
           (object.empty() ? "" : " (" + object + ")");
  }
  const Allocation* a = x.run->memory->at_or_below(address);
  std::string text = range + "global address " + hex(address) + ", ";
  if (a == nullptr || address < kGlobalBase) return text + "which is in no allocation";
  const std::uint64_t offset = address - a->base;
  const auto size = static_cast<std::uint64_t>(a->size);
  const std::string name = "allocation of " + std::to_string(size) + " bytes" +
                           (a->label.empty() ? "" : " (" + a->label + ")");
  if (offset < size) return text + "bytes " + std::to_string(offset) + " and up of an " + name;
  return text + std::to_string(offset - size) + " bytes past the end of an " + name;
}

void report_fault(Exec& x, unsigned lane, Space space, std::uint64_t address, std::int64_t bytes,
                  Purpose purpose, Fault fault) {
  const std::string verb = purpose == Purpose::read    ? "reads "
                           : purpose == Purpose::write ? "writes "
                                                       : "updates ";
  Finding f{.kind = Kind::out_of_bounds, .lane = lane, .message = {}, .range = {}, .other = {}};
  switch (fault) {
    case Fault::none:
      return;
    case Fault::outside:
      f.message = verb + outside_text(x, space, address, bytes);
      break;
    case Fault::freed:
      f.kind = Kind::use_after_free;
      f.message = verb + std::to_string(bytes) + " bytes at global address " + hex(address) +
                  " in an allocation that was freed";
      break;
    case Fault::read_only:
      f.message = verb + "constant memory at " + hex(address);
      break;
    case Fault::foreign:
      f.message = verb + "shared memory of block rank " + std::to_string(address >> kRankShift) +
                  " of the cluster, " +
                  (space == Space::shared ? "which shared::cta does not reach" : "which has ended");
      break;
    case Fault::misaligned:
      return;
  }
  if (!x.checks(f.kind)) return;
  f.range = Range{space_name(space), address, static_cast<std::uint32_t>(bytes), {}};
  report(x, std::move(f));
}

}  // namespace

bool locate(Exec& x, unsigned lane, Space space, std::uint64_t address, std::int64_t bytes,
            std::int64_t alignment, Purpose purpose, Located& out) {
  if (alignment > 1 && address % static_cast<std::uint64_t>(alignment) != 0) {
    if (x.checks(Kind::misaligned)) {
      report(x, {.kind = Kind::misaligned,
                 .lane = lane,
                 .message = "accesses " + std::to_string(bytes) + " bytes at " + space_name(space) +
                            " address " + hex(address) + ", which is no multiple of " +
                            std::to_string(alignment),
                 .range = Range{space_name(space), address, static_cast<std::uint32_t>(bytes), {}},
                 .other = {}});
    }
    return false;
  }
  const Fault fault = find(x, space, address, bytes, purpose, out);
  if (fault == Fault::none) return true;
  report_fault(x, lane, space, address, bytes, purpose, fault);
  return false;
}

bool locate_quietly(Exec& x, Space space, std::uint64_t address, std::int64_t bytes,
                    Purpose purpose, Located& out) {
  if (space == Space::global) {
    const Allocation* a = x.grid->last_allocation;
    const std::uint64_t base = a != nullptr && a->contains(address, bytes) ? a->base : 0;
    if (base == 0) {
      a = x.run->memory->at_or_below(address);
      if (a == nullptr || !a->contains(address, bytes)) return false;
    }
    const std::uint64_t offset = (address - a->base) % kPageBytes;
    if (offset + static_cast<std::uint64_t>(bytes) > kPageBytes) return false;
  }
  return find(x, space, address, bytes, purpose, out) == Fault::none;
}

namespace {

/// Calls `each(word, bits)` for the words of the bitmap that hold the bytes' bits.
template <class Each>
void for_init_words(const Located& l, std::int64_t offset, std::int64_t bytes, Each each) {
  if (bytes <= 0) return;
  const auto begin = static_cast<std::uint64_t>(l.init_bit + offset);
  const std::uint64_t last = begin + static_cast<std::uint64_t>(bytes) - 1;
  std::uint64_t* word = l.init + begin / 64;
  std::uint64_t* const last_word = l.init + last / 64;
  const std::uint64_t from = ~std::uint64_t{0} << begin % 64;
  const std::uint64_t to = ~std::uint64_t{0} >> (63 - last % 64);
  if (word == last_word) {
    each(*word, from & to);
    return;
  }
  each(*word, from);
  for (++word; word != last_word; ++word)
    each(*word, ~std::uint64_t{0});
  each(*word, to);
}

}  // namespace

bool is_initialized(const Located& l, std::int64_t offset, std::int64_t bytes) {
  if (l.data == nullptr) return false;
  std::uint64_t missing = 0;
  for_init_words(l, offset, bytes,
                 [&](std::uint64_t word, std::uint64_t b) { missing |= b & ~word; });
  return missing == 0;
}

void set_initialized(const Located& l, std::int64_t offset, std::int64_t bytes, bool defined) {
  if (defined) {
    for_init_words(l, offset, bytes, [](std::uint64_t& word, std::uint64_t b) { word |= b; });
  } else {
    for_init_words(l, offset, bytes, [](std::uint64_t& word, std::uint64_t b) { word &= ~b; });
  }
}

void report_uninitialized(Exec& x, unsigned lane, const ShadowTarget& target, std::uint64_t address,
                          std::int64_t bytes) {
  if (!x.checks(Kind::uninitialized_read)) return;
  report(x, {.kind = Kind::uninitialized_read,
             .lane = lane,
             .message = "reads " + std::to_string(bytes) + " bytes at " +
                        describe_address(x, target, address) + " that nothing has written",
             .range = Range{space_name(target.space), address, static_cast<std::uint32_t>(bytes),
                            object_name(x, target, address)},
             .other = {},
             .too_early = true});
}

bool race_checked(const Exec& x) {
  constexpr std::uint32_t kinds =
      1U << static_cast<int>(Kind::race) | 1U << static_cast<int>(Kind::unordered) |
      1U << static_cast<int>(Kind::async_in_flight) | 1U << static_cast<int>(Kind::proxy_fence);
  return (x.grid->options.checks.bits & kinds) != 0;
}

Strength strength_of(const OpInfo& info) {
  switch (info.order) {
    case Order::weak:
      return Strength::weak;
    case Order::volatile_:
      return Strength::volatile_;
    case Order::relaxed:
    case Order::acquire:
    case Order::release:
    case Order::acq_rel:
    case Order::sc:
      break;
  }
  switch (info.scope) {
    case Scope::cta:
      return Strength::cta;
    case Scope::cluster:
      return Strength::cluster;
    case Scope::sys:
      return Strength::sys;
    case Scope::none:
    case Scope::gpu:
      return Strength::gpu;
  }
  return Strength::gpu;
}

}  // namespace tilewright::emu::detail
