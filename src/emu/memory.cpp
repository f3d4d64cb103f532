// SPDX-License-Identifier: Apache-2.0
// Emulated global memory: pages appear when written; fills of whole pages share one pattern page.
#include "emu/memory.h"

#include <algorithm>
#include <cstring>

namespace tilewright::emu::detail {

namespace {
std::uint64_t low_bits(std::int64_t count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

/// Calls visit(word, mask) for the words of Page::init that have bits of the bytes.
template <class Visit>
void for_words(std::int64_t offset, std::int64_t bytes, const Visit& visit) {
  while (bytes > 0) {
    const std::int64_t bit = offset % 64;
    const std::int64_t count = std::min<std::int64_t>(bytes, 64 - bit);
    visit(static_cast<std::size_t>(offset / 64), low_bits(count) << bit);
    offset += count;
    bytes -= count;
  }
}
}  // namespace

bool Page::initialized(std::int64_t offset, std::int64_t bytes) const {
  bool all = true;
  for_words(offset, bytes,
            [&](std::size_t word, std::uint64_t mask) { all &= (init[word] & mask) == mask; });
  return all;
}

void Page::set_initialized(std::int64_t offset, std::int64_t bytes) {
  for_words(offset, bytes, [&](std::size_t word, std::uint64_t mask) { init[word] |= mask; });
}

void Page::set_uninitialized(std::int64_t offset, std::int64_t bytes) {
  for_words(offset, bytes, [&](std::size_t word, std::uint64_t mask) { init[word] &= ~mask; });
}

Memory::~Memory() {
  for (auto& allocation : allocations)
    drop_pages(*allocation);
}

Allocation& Memory::allocate(std::int64_t bytes, std::string label, int device) {
  auto allocation = std::make_unique<Allocation>();
  allocation->base = next;
  allocation->size = bytes;
  allocation->label = std::move(label);
  allocation->device = device;
  const std::int64_t chunk_bytes = kChunkPages * kPageBytes;
  allocation->chunks.resize(static_cast<std::size_t>((bytes + chunk_bytes - 1) / chunk_bytes));
  const std::uint64_t end = next + static_cast<std::uint64_t>(bytes) + kAllocationAlign;
  next = (end + kAllocationAlign - 1) / kAllocationAlign * kAllocationAlign;
  allocations.push_back(std::move(allocation));
  return *allocations.back();
}

void Memory::drop_pages(Allocation& allocation) {
  for (auto& chunk : allocation.chunks) {
    if (!chunk) continue;
    for (Page* page : chunk->pages) {
      if (page == nullptr || page->pattern) continue;
      touched_bytes -= static_cast<std::int64_t>(sizeof(Page));
      delete page;
    }
    chunk.reset();
  }
}

void Memory::release(Allocation& allocation) {
  allocation.freed = true;
  drop_pages(allocation);
}

Allocation* Memory::at_or_below(std::uint64_t address) const {
  auto it = std::upper_bound(allocations.begin(), allocations.end(), address,
                             [](std::uint64_t a, const auto& b) { return a < b->base; });
  return it == allocations.begin() ? nullptr : std::prev(it)->get();
}

Page* Memory::readable(const Allocation& allocation, std::uint64_t address) const {
  const std::uint64_t page = (address - allocation.base) / kPageBytes;
  const Chunk* chunk = allocation.chunks[page / kChunkPages].get();
  Page* found = chunk == nullptr ? nullptr : chunk->pages[page % kChunkPages];
  return found != nullptr ? found : allocation.background;
}

Page*& Memory::entry(Allocation& allocation, std::uint64_t address) {
  const std::uint64_t page = (address - allocation.base) / kPageBytes;
  auto& chunk = allocation.chunks[page / kChunkPages];
  if (!chunk) chunk = std::make_unique<Chunk>();
  return chunk->pages[page % kChunkPages];
}

Page& Memory::writable(Allocation& allocation, std::uint64_t address) {
  Page*& page = entry(allocation, address);
  if (page != nullptr && !page->pattern) return *page;
  touched_bytes += static_cast<std::int64_t>(sizeof(Page));
  if (touched_bytes > limit_bytes) throw MemoryLimit{};
  auto fresh = std::make_unique<Page>();
  const Page* from = page != nullptr ? page : allocation.background;
  if (from != nullptr) {
    fresh->data = from->data;
    fresh->init = from->init;
  }
  page = fresh.release();
  return *page;
}

ShadowMap& Memory::shadow(Page& page) {
  if (!page.shadow) {
    if (touched_bytes > limit_bytes) throw MemoryLimit{};
    page.shadow = std::make_unique<ShadowMap>(kPageBytes / 4, &touched_bytes);
  }
  return *page.shadow;
}

void Memory::forget_accesses() {
  next_block = 1;
  past.clear();
  for (auto& allocation : allocations) {
    for (auto& chunk : allocation->chunks) {
      if (!chunk) continue;
      for (Page* page : chunk->pages) {
        if (page == nullptr || !page->shadow) continue;
        page->shadow.reset();
      }
    }
  }
}

void Memory::write(Allocation& allocation, std::uint64_t address,
                   std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto offset = static_cast<std::size_t>((address - allocation.base) % kPageBytes);
    const std::size_t count = std::min<std::size_t>(bytes.size(), kPageBytes - offset);
    Page& page = writable(allocation, address);
    std::memcpy(page.data.data() + offset, bytes.data(), count);
    page.set_initialized(static_cast<std::int64_t>(offset), static_cast<std::int64_t>(count));
    address += count;
    bytes = bytes.subspan(count);
  }
}

void Memory::forget(Allocation& allocation, std::uint64_t address, std::int64_t bytes) {
  while (bytes > 0) {
    const auto offset = static_cast<std::int64_t>((address - allocation.base) % kPageBytes);
    const std::int64_t count = std::min<std::int64_t>(bytes, kPageBytes - offset);
    if (readable(allocation, address) != nullptr)
      writable(allocation, address).set_uninitialized(offset, count);
    address += static_cast<std::uint64_t>(count);
    bytes -= count;
  }
}

void Memory::read(const Allocation& allocation, std::uint64_t address,
                  std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const auto offset = static_cast<std::size_t>((address - allocation.base) % kPageBytes);
    const std::size_t count = std::min<std::size_t>(bytes.size(), kPageBytes - offset);
    const Page* page = readable(allocation, address);
    if (page != nullptr) {
      std::memcpy(bytes.data(), page->data.data() + offset, count);
    } else {
      std::memset(bytes.data(), 0, count);
    }
    address += count;
    bytes = bytes.subspan(count);
  }
}

Page* Memory::pattern_page(std::uint32_t pattern, int width) {
  auto fresh = std::make_unique<Page>();
  for (std::size_t i = 0; i < fresh->data.size(); ++i) {
    const auto shift = 8 * (i % static_cast<std::size_t>(width));
    fresh->data[i] = static_cast<std::byte>(pattern >> shift);
  }
  fresh->init.fill(~std::uint64_t{0});
  fresh->pattern = true;
  for (auto& page : patterns_) {
    if (page->data == fresh->data) return page.get();
  }
  patterns_.push_back(std::move(fresh));
  return patterns_.back().get();
}

void Memory::fill(Allocation& allocation, std::uint64_t address, std::int64_t bytes,
                  std::uint32_t pattern, int width) {
  Page* page = pattern_page(pattern, width);
  if (address == allocation.base && bytes == allocation.size) {
    drop_pages(allocation);
    allocation.background = page;
    return;
  }
  const std::uint64_t start = address;
  while (bytes > 0) {
    const auto offset = static_cast<std::int64_t>((address - allocation.base) % kPageBytes);
    const auto phase = static_cast<std::size_t>(address - start) % static_cast<std::size_t>(width);
    const std::int64_t count = std::min(bytes, kPageBytes - offset);
    Page*& old = entry(allocation, address);
    if (count == kPageBytes && phase == 0 && (old == nullptr || old->pattern)) {
      old = page;
    } else {
      // The pattern starts anew at `address`; it repeats within a page, so a rotated view serves.
      std::vector<std::byte> piece(static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < piece.size(); ++i) {
        piece[i] = page->data[(phase + i) % static_cast<std::size_t>(width)];
      }
      write(allocation, address, piece);
    }
    address += static_cast<std::uint64_t>(count);
    bytes -= count;
  }
}

}  // namespace tilewright::emu::detail
