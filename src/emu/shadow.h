// SPDX-License-Identifier: Apache-2.0
// What the race check remembers of each 4-byte word: the last writer and the readers since.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tilewright::emu::detail {

/// A packed access: epoch 21 | block 24 | agent 12 | scope 3 | byte mask 4, high to low; 0 is none.
/// The scope is 0 for a weak access, else how far the strong access reaches (cta .. sys).
struct Record {
  std::uint64_t bits = 0;

  static constexpr int kEpochShift = 43, kBlockShift = 19, kAgentShift = 7, kScopeShift = 4;
  static constexpr std::uint32_t kEpochLimit = (1U << 21) - 1, kBlockLimit = (1U << 24) - 1;

  static Record make(std::uint32_t epoch, std::uint32_t block, std::uint32_t agent,
                     std::uint32_t scope, std::uint32_t mask) {
    return {std::uint64_t{epoch} << kEpochShift | std::uint64_t{block} << kBlockShift |
            std::uint64_t{agent} << kAgentShift | std::uint64_t{scope} << kScopeShift | mask};
  }
  std::uint32_t epoch() const { return static_cast<std::uint32_t>(bits >> kEpochShift); }
  std::uint32_t block() const {
    return static_cast<std::uint32_t>(bits >> kBlockShift) & kBlockLimit;
  }
  std::uint32_t agent() const { return static_cast<std::uint32_t>(bits >> kAgentShift) & 0xfff; }
  std::uint32_t scope() const { return static_cast<std::uint32_t>(bits >> kScopeShift) & 7; }
  std::uint32_t mask() const { return static_cast<std::uint32_t>(bits) & 15; }
};

/// Agents of a reader record that stand for more than one warp's lanes.
constexpr std::uint32_t kManyWarps = 0xfff;   ///< `lanes` is a set of warps; all read at one epoch
constexpr std::uint32_t kReaderList = 0xffe;  ///< `lanes` is an index into the block's lists
constexpr std::uint32_t kManyBlocks = 0xffd;  ///< `lanes` is another block's number
constexpr std::uint32_t kAgents = 0xffd;

/// Views of the shadow of consecutive words.
struct ShadowView {
  std::uint64_t* writer = nullptr;
  std::uint64_t* reader = nullptr;
  std::uint32_t* lanes = nullptr;      ///< which lanes of the reader's warp
  std::uint32_t* writer_pc = nullptr;  ///< for reports
  std::uint32_t* reader_pc = nullptr;
};

/// The shadow of one 4 KiB page.
struct Shadow {
  static constexpr std::size_t kWords = 1024;
  std::array<std::uint64_t, kWords> writer{}, reader{};
  std::array<std::uint32_t, kWords> lanes{}, writer_pc{}, reader_pc{};

  ShadowView view(std::size_t word) {
    return {&writer[word], &reader[word], &lanes[word], &writer_pc[word], &reader_pc[word]};
  }
};

/// The shadow of a block's shared memory.
struct SharedShadow {
  std::vector<std::uint64_t> writer, reader;
  std::vector<std::uint32_t> lanes, writer_pc, reader_pc;

  void resize(std::size_t words) {
    writer.assign(words, 0);
    reader.assign(words, 0);
    lanes.resize(words);
    writer_pc.resize(words);
    reader_pc.resize(words);
  }
  ShadowView view(std::size_t word) {
    return {&writer[word], &reader[word], &lanes[word], &writer_pc[word], &reader_pc[word]};
  }
};

}  // namespace tilewright::emu::detail
