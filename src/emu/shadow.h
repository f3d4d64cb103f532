// SPDX-License-Identifier: Apache-2.0
// What the race check remembers of each 4-byte word: the last writer and the readers since.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tilewright::emu::detail {

/// A packed access: epoch 21 | block 24 | agent 12 | scope 3 | byte mask 4, high to low; 0 is none.
/// The scope is 0 for a weak access, else how far the strong access reaches (cta .. sys).
struct Record {
  std::uint64_t bits = 0;

  static constexpr int kEpochShift = 43, kBlockShift = 19, kAgentShift = 7, kScopeShift = 4;
  static constexpr std::uint32_t kEpochLimit = (1U << 21) - 1, kBlockLimit = (1U << 24) - 1;
  static constexpr std::uint64_t kWho = std::uint64_t{kBlockLimit} << kBlockShift |
                                        0xfffULL << kAgentShift;  ///< bits of block and agent

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

/// Agents of records that stand for more than one warp's lanes, or more than one thread.
constexpr std::uint32_t kManyWarps = 0xfff;   ///< `lanes` is a set of warps; all read at one epoch
constexpr std::uint32_t kReaderList = 0xffe;  ///< `lanes` is an index into the block's lists
/// From here on, half the number of the thread that accessed the lower half of the word; the next
/// thread accessed the upper one in the same epoch, as in rows of elements of two bytes.
constexpr std::uint32_t kPairs = 0xc00;
/// Of a word whose parts have records of their own. The epoch is out of reach and the block the
/// last of those that accessed a part: settled only if all parts are.
constexpr std::uint32_t kInParts = 0xbff;
/// From here on, plus the warp of the block that read last. `lanes` is a BlockReaders; neither of
/// the two blocks read in an epoch before the record's.
constexpr std::uint32_t kManyBlocks = 0xbdf;
constexpr std::uint32_t kAgents = kManyBlocks;

/// Of the blocks that read a word, the last is the record's, and one that read before is kept.
struct BlockReaders {
  std::uint32_t other = 0, other_warp = 0;
  bool other_by_warp = false, last_by_warp = false;  ///< else of no known warp

  static BlockReaders of(std::uint32_t lanes) {
    return {lanes & Record::kBlockLimit, lanes >> kWarpShift & 31, (lanes & kOtherByWarp) != 0,
            (lanes & kLastByWarp) != 0};
  }
  std::uint32_t lanes() const {
    return other | other_warp << kWarpShift | (other_by_warp ? kOtherByWarp : 0) |
           (last_by_warp ? kLastByWarp : 0);
  }

 private:
  static constexpr int kWarpShift = 24;
  static constexpr std::uint32_t kOtherByWarp = 1U << 29, kLastByWarp = 1U << 30;
};

/// Where an access stands for reports, together with the size of a strong one: strong accesses that
/// overlap without covering each other race.
constexpr int kSizeShift = 29;
constexpr std::uint32_t kPcMask = (1U << kSizeShift) - 1;
/// `element_bytes`: a power of two up to 16; 0 for weak accesses, whose size does not matter.
constexpr std::uint32_t sized_pc(std::uint32_t pc, std::uint32_t element_bytes) {
  return pc | static_cast<std::uint32_t>(std::bit_width(element_bytes)) << kSizeShift;
}

/// Views of the shadow of consecutive words.
struct ShadowView {
  std::uint64_t* writer = nullptr;
  std::uint64_t* reader = nullptr;
  std::uint32_t* lanes = nullptr;      ///< which lanes of the reader's warp
  std::uint32_t* writer_pc = nullptr;  ///< for reports
  std::uint32_t* reader_pc = nullptr;
};

/// The accesses to a half or to one byte of a word.
struct Part {
  std::uint64_t writer = 0, reader = 0;
  std::uint32_t lanes = 0, writer_pc = 0, reader_pc = 0;
};

/// The accesses to 32 words, said once: consecutive agents have `1 << shift` words each.
struct ShadowLine {
  static constexpr unsigned kWords = 32;

  std::uint64_t writer = 0;  ///< of the first word
  std::uint64_t reader = 0;  ///< of every word: kManyWarps, one warp, or one asynchronous copy
  std::uint32_t lanes = 0;  ///< kManyWarps: the warps; one warp: the lane that reads the first word
  std::uint32_t writer_pc = 0, reader_pc = 0;
  std::uint8_t writer_shift = 0, reader_shift = 0;
  bool by_word = false;  ///< the above is void: the words' accesses differ

  std::uint64_t writer_of(unsigned word) const {
    return writer + (std::uint64_t{word >> writer_shift} << Record::kAgentShift);
  }
  std::uint32_t lanes_of(unsigned word) const {
    return Record{reader}.agent() == kManyWarps ? lanes
                                                : 1U << ((lanes + (word >> reader_shift)) & 31);
  }
};

/// The shadow of a page or of a block's shared memory. Most lines are accessed by whole warps, and
/// one record says it all; records by word are made when some line first needs them.
class ShadowMap {
  struct PartLine {
    std::array<std::uint8_t, ShadowLine::kWords> count{};  ///< of the word's parts
    std::vector<Part> part;  ///< `stride` a word: two, or four if some word needs them
    std::size_t stride = 0;
  };
  struct Words {
    std::vector<std::uint64_t> writer, reader;
    std::vector<std::uint32_t> lanes, writer_pc, reader_pc;
    std::vector<std::unique_ptr<PartLine>> parts;  ///< by line; none until some word has parts
  };

 public:
  /// `touched` counts the bytes of host memory, where they are limited.
  explicit ShadowMap(std::size_t words, std::int64_t* touched = nullptr);
  ShadowMap(const ShadowMap&) = delete;
  ShadowMap& operator=(const ShadowMap&) = delete;
  ~ShadowMap();

  std::size_t words() const { return lines_.size() * ShadowLine::kWords; }
  ShadowLine& line(std::size_t word) { return lines_[word / ShadowLine::kWords]; }
  /// Records by word of `count` words from `word` on.
  ShadowView view(std::size_t word, std::size_t count);
  /// The word's parts: none, two halves or four bytes.
  std::span<Part> parts(std::size_t word) {
    if (by_word_->parts.empty()) return {};
    PartLine* line = by_word_->parts[word / ShadowLine::kWords].get();
    if (line == nullptr) return {};
    const std::size_t at = word % ShadowLine::kWords;
    return {&line->part[at * line->stride], line->count[at]};
  }
  /// As many parts of the word, at least as many as there are; new ones are copies of the old.
  std::span<Part> split(std::size_t word, unsigned count);

 private:
  std::vector<ShadowLine> lines_;
  std::unique_ptr<Words> by_word_;
  std::int64_t* touched_;

  void count_bytes(std::size_t bytes, int sign);
  void make_words();
  void expand(std::size_t index);
  void widen(PartLine& line, std::size_t stride);
};

}  // namespace tilewright::emu::detail
