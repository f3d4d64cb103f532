// SPDX-License-Identifier: Apache-2.0
// Emulated global memory: allocations with red zones, sparse 4 KiB pages, initialised bytes.
#pragma once

#include "emu/shadow.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tilewright::emu::detail {

constexpr std::int64_t kPageBytes = 4096;
constexpr std::int64_t kChunkPages = 1024;
constexpr std::uint64_t kGlobalBase = 0x1000'0000'0000;  ///< above every window
constexpr std::uint64_t kAllocationAlign = 512;          ///< also the least red zone

/// One page that was touched. `pattern` pages are shared and are copied before a write.
struct Page {
  std::array<std::byte, kPageBytes> data{};
  std::array<std::uint64_t, kPageBytes / 64>
      init{};  ///< bit i of word j: byte 64 j + i was written
  std::unique_ptr<ShadowMap> shadow;
  bool pattern = false;

  bool initialized(std::int64_t offset, std::int64_t bytes) const;
  void set_initialized(std::int64_t offset, std::int64_t bytes);
  void set_uninitialized(std::int64_t offset, std::int64_t bytes);
};

struct Chunk {
  std::array<Page*, kChunkPages> pages{};
};

struct Allocation {
  std::uint64_t base = 0;
  std::int64_t size = 0;
  std::string label;
  int device = 0;
  bool freed = false;
  bool read_only = false;
  Page* background = nullptr;  ///< what untouched pages read as; null: uninitialised zeros
  std::vector<std::unique_ptr<Chunk>> chunks;
  std::vector<std::uint64_t> members;  ///< multicast: the same bytes on several devices

  bool contains(std::uint64_t address, std::int64_t bytes) const {
    return address >= base && address - base <= static_cast<std::uint64_t>(size - bytes) &&
           size >= bytes;
  }
};

struct Grid;

/// A launch that some later one may not be ordered behind.
struct PastLaunch {
  std::shared_ptr<Grid> grid;  ///< ended; for reports
  std::uint32_t stream = 0;
  std::uint64_t number = 0;  ///< among those of its stream, from 1
};

/// Thrown inside a launch when Limits::memory_bytes is reached; becomes a finding.
struct MemoryLimit {};

struct Memory {
  std::vector<std::unique_ptr<Allocation>> allocations;  ///< by base
  std::uint64_t next = kGlobalBase;
  int devices = 0;
  std::uint32_t next_block = 1;  ///< numbers for blocks, in Records
  std::vector<PastLaunch> past;
  std::int64_t touched_bytes = 0;
  std::int64_t limit_bytes = std::int64_t{1} << 62;

  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  Allocation& allocate(std::int64_t bytes, std::string label, int device);
  void release(Allocation& allocation);
  /// The allocation with the greatest base <= address, freed or not; null if none.
  Allocation* at_or_below(std::uint64_t address) const;
  /// Null for a page that nothing was written to and that has no background.
  Page* readable(const Allocation& allocation, std::uint64_t address) const;
  Page& writable(Allocation& allocation, std::uint64_t address);
  ShadowMap& shadow(Page& page);
  /// Drops every shadow: block numbers start anew.
  void forget_accesses();

  void write(Allocation& allocation, std::uint64_t address, std::span<const std::byte> bytes);
  void read(const Allocation& allocation, std::uint64_t address, std::span<std::byte> bytes) const;
  /// Bytes that were written count as never written, with their values.
  void forget(Allocation& allocation, std::uint64_t address, std::int64_t bytes);
  void fill(Allocation& allocation, std::uint64_t address, std::int64_t bytes,
            std::uint32_t pattern, int width);

 private:
  std::vector<std::unique_ptr<Page>> patterns_;

  Page* pattern_page(std::uint32_t pattern, int width);
  Page*& entry(Allocation& allocation, std::uint64_t address);
  void drop_pages(Allocation& allocation);
};

}  // namespace tilewright::emu::detail
