// SPDX-License-Identifier: Apache-2.0
// The race check word by word, and by halves or bytes of a word where its accesses differ.
#include "emu/race_judge.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace tilewright::emu::detail {

namespace {

/// The record of a word, or of a part of one.
struct Cell {
  std::uint64_t& writer;
  std::uint64_t& reader;
  std::uint32_t& lanes;
  std::uint32_t& writer_pc;
  std::uint32_t& reader_pc;
};

bool is_many_blocks(Record r) { return r.agent() >= kManyBlocks && r.agent() < kInParts; }

bool same_size(std::uint32_t pc, std::uint32_t other) { return ((pc ^ other) & ~kPcMask) == 0; }

/// The strength of several readers together: that of the weakest.
std::uint32_t weakest(std::uint32_t a, std::uint32_t b) {
  if (a == 0 || b == 0) return 0;
  return a == 5 ? b : b == 5 ? a : std::min(a, b);
}

/// One access to the bytes of a cell that are in `mask`.
struct CellAccess {
  const Party& a;
  Cell cell;
  std::uint64_t word;
  std::uint32_t mask;
  bool equal;

  std::uint32_t scope() const { return static_cast<std::uint32_t>(a.strength); }
  bool mine(Record r) const { return r.block() == a.x.block->number; }
  bool is_thread() const { return a.actor.agent < a.x.block->threads; }
  std::uint32_t first() const { return is_thread() ? a.actor.agent & ~31U : a.actor.agent; }
  std::uint32_t bit() const { return is_thread() ? 1U << (a.actor.agent & 31) : 1; }
  bool check_writer() const;
  bool check_readers() const;
  bool holds_all_readers() const;
  void record_read() const;

 private:
  bool forgotten(Record r) const;
  bool settled(Record r) const;
  bool same_kind(Record r) const;
  Reader reader_of(Record r) const;
  const std::vector<Reader>* list_of(Record r) const;
  template <class Each>
  bool each_of_many(Record r, Each each) const;
  bool knows(Record r, const Reader& reader, std::uint32_t& unknown) const;
  bool knows_readers(Record r) const;
  bool conflict(Record r, std::uint32_t thread, std::uint32_t pc, bool writes) const;
  bool check_reader(Record r, const Reader& reader) const;
  bool check_list(Record r) const;
  bool is_before_proxy(Record r) const;
  bool check_blocks(Record r) const;
  struct WarpEpoch {
    std::uint32_t warp = 0, epoch = Record::kEpochLimit;
    bool by_warp = false;
  };
  WarpEpoch some_reader(Record r) const;
  void record_other_block(Record r) const;
  void set_reader(std::uint32_t epoch, std::uint32_t block, std::uint32_t agent,
                  std::uint32_t scope, std::uint32_t lanes) const;
  void start_readers() const;
  void add_reader(Record r) const;
};

/// Of no interest to anybody: left by blocks or launches that all come behind.
bool CellAccess::forgotten(Record r) const {
  if (a.target.owner == nullptr) return r.block() < a.x.run->first_unordered;
  const Cluster& c = *a.target.owner->cluster;
  return r.block() - c.number >= c.blocks.size();
}

/// Readers whom every thread of the block knows.
bool CellAccess::settled(Record r) const {
  if (stale(a.x, a.target, r.block(), a.actor)) return true;
  return mine(r) && r.epoch() <= a.x.block->floor.epoch &&
         (r.agent() < a.x.block->threads || r.agent() >= kPairs);
}

bool CellAccess::same_kind(Record r) const {
  return r.scope() == scope() && same_size(cell.reader_pc, a.pc);
}

bool CellAccess::conflict(Record r, std::uint32_t thread, std::uint32_t pc, bool writes) const {
  report_conflict(a, {r, thread, pc, writes, word, mask & r.mask(), equal && writes});
  return false;
}

/// False: something was reported. So do the other checks.
bool CellAccess::check_writer() const {
  const Record r{cell.writer};
  if (r.bits == 0 || (r.mask() & mask) == 0) return true;
  const bool harmless = is_exempt(a, r, cell.writer_pc);
  if (harmless && !a.actor.async_proxy) return true;
  if (!precedes(a.x, a.target, r, a.actor)) {
    return harmless || conflict(r, r.agent(), cell.writer_pc, true);
  }
  if (!a.actor.async_proxy || async_knows(a.x, a.target, r, a.actor)) return true;
  report_proxy(a, {r, r.agent(), cell.writer_pc, true, word});
  return false;
}

/// Readers of one warp or copy, as an entry of a list.
Reader CellAccess::reader_of(Record r) const {
  return {r.agent(), r.epoch(), cell.lanes, cell.reader_pc, r.scope(), false};
}

/// The readers of kReaderList; null if the list is gone with its block or with a barrier.
const std::vector<Reader>* CellAccess::list_of(Record r) const {
  const Block* owner = mine(r) ? a.x.block : a.x.grid->block_of(r.block());
  if (owner == nullptr || owner->floor.epoch >= r.epoch()) return nullptr;
  return &owner->reader_lists[cell.lanes];
}

/// The readers of kManyWarps; until `each` says false.
template <class Each>
bool CellAccess::each_of_many(Record r, Each each) const {
  for (std::uint32_t left = cell.lanes; left != 0; left &= left - 1) {
    const auto warp = static_cast<std::uint32_t>(std::countr_zero(left));
    if (!each(Reader{warp * 32, r.epoch(), ~std::uint32_t{0}, cell.reader_pc, r.scope(), true})) {
      return false;
    }
  }
  return true;
}

bool CellAccess::knows(Record r, const Reader& reader, std::uint32_t& unknown) const {
  for (std::uint32_t left = reader.lanes; left != 0; left &= left - 1) {
    const std::uint32_t agent = reader.agent + static_cast<std::uint32_t>(std::countr_zero(left));
    const bool known = knows_agent(a.x, r.block(), agent, reader.epoch, a.actor);
    if (known && reader.any) return true;
    if (known || reader.any) continue;
    unknown = agent;
    return false;
  }
  unknown = reader.agent;
  return !reader.any;
}

bool CellAccess::check_reader(Record r, const Reader& reader) const {
  r = Record::make(reader.epoch, r.block(), reader.agent, reader.scope, r.mask());
  std::uint32_t unknown = 0;
  return is_exempt(a, r, reader.pc) || knows(r, reader, unknown) ||
         conflict(r, unknown, reader.pc, false);
}

bool CellAccess::check_list(Record r) const {
  const auto* list = list_of(r);
  if (list == nullptr) {
    return is_exempt(a, r, cell.reader_pc) ||
           find_block(a.actor.knowledge->foreign, r.block()) != nullptr ||
           conflict(r, 0, cell.reader_pc, false);
  }
  return std::all_of(list->begin(), list->end(),
                     [&](const Reader& reader) { return check_reader(r, reader); });
}

/// Of a read by no known warp it is enough that something is known of its block.
bool CellAccess::check_blocks(Record r) const {
  auto check = [&](std::uint32_t block, std::uint32_t warp, bool by_warp) {
    if (stale(a.x, a.target, block, a.actor)) return true;
    const Record one = Record::make(r.epoch(), block, warp * 32, r.scope(), r.mask());
    const Reader reader{one.agent(), r.epoch(), ~std::uint32_t{0}, cell.reader_pc, r.scope(), true};
    if (by_warp) return check_reader(one, reader);
    return block == a.x.block->number || find_block(a.actor.knowledge->foreign, block) != nullptr ||
           conflict(one, 0, cell.reader_pc, false);
  };
  const BlockReaders readers = BlockReaders::of(cell.lanes);
  return check(r.block(), r.agent() - kManyBlocks, readers.last_by_warp) &&
         check(readers.other, readers.other_warp, readers.other_by_warp);
}

/// May the asynchronous proxy know of the reads? Of a list that is gone, it must know of the
/// barrier that emptied it.
bool CellAccess::is_before_proxy(Record r) const {
  auto knows_some = [&](const Reader& reader, bool all) {
    for (std::uint32_t left = reader.lanes; left != 0; left &= left - 1) {
      const std::uint32_t agent = reader.agent + static_cast<std::uint32_t>(std::countr_zero(left));
      const Record one = Record::make(reader.epoch, r.block(), agent, 0, 15);
      if (async_knows(a.x, a.target, one, a.actor) != all) return !all;
    }
    return all;
  };
  if (r.agent() < kAgents) return knows_some(reader_of(r), true);
  if (r.agent() == kManyWarps) {
    return each_of_many(r, [&](const Reader& reader) { return knows_some(reader, false); });
  }
  if (r.agent() != kReaderList) return true;
  const auto* list = list_of(r);
  if (list == nullptr) return knows_some({0, r.epoch(), 1, 0, 0, false}, true);
  return std::all_of(list->begin(), list->end(),
                     [&](const Reader& reader) { return knows_some(reader, !reader.any); });
}

bool CellAccess::check_readers() const {
  const Record r{cell.reader};
  if (r.bits == 0 || (r.mask() & mask) == 0) return true;
  if (checks_overtaken(a.x, a.access, a.actor) && !is_before_proxy(r)) {
    report_overtaken(a, {r, r.agent() < kAgents ? r.agent() : 0, cell.reader_pc, false, word});
  }
  if (settled(r)) return true;
  if (a.target.owner == nullptr && r.block() < a.x.run->grids[0]->first_number) {
    return is_exempt(a, r, cell.reader_pc) ||
           conflict(r, r.agent() < kAgents ? r.agent() : 0, cell.reader_pc, false);
  }
  if (r.agent() == kReaderList) return check_list(r);
  if (is_exempt(a, r, cell.reader_pc)) return true;
  if (is_many_blocks(r)) return check_blocks(r);
  if (r.agent() != kManyWarps) return check_reader(r, reader_of(r));
  return each_of_many(r, [&](const Reader& reader) { return check_reader(r, reader); });
}

/// Do the record's bytes stay those that all its readers read, with this one among them?
bool CellAccess::holds_all_readers() const {
  const Record r{cell.reader};
  if (r.bits == 0 || r.mask() == mask || forgotten(r)) return true;
  if ((r.mask() & ~mask) == 0 && settled(r)) return true;
  return mine(r) && is_thread() && r.agent() == first() && r.epoch() == a.actor.epoch &&
         cell.lanes == bit() && same_kind(r) && scope() == 0;
}

void CellAccess::set_reader(std::uint32_t epoch, std::uint32_t block, std::uint32_t agent,
                            std::uint32_t scope, std::uint32_t lanes) const {
  const std::uint32_t old = Record{cell.reader}.mask();
  cell.reader = Record::make(epoch, block, agent, scope, mask | old).bits;
  cell.lanes = lanes;
  cell.reader_pc = a.pc;
}

void CellAccess::start_readers() const {
  cell.reader = 0;
  set_reader(a.actor.epoch, a.x.block->number, first(), scope(), bit());
}

/// Pre: holds_all_readers().
void CellAccess::record_read() const {
  const Record r{cell.reader};
  if (r.bits == 0 || settled(r)) {
    start_readers();
    return;
  }
  if (!mine(r) || is_many_blocks(r)) {
    record_other_block(r);
    return;
  }
  const bool plain = r.agent() < a.x.block->threads && is_thread() && same_kind(r);
  if (plain && r.agent() == first() && r.epoch() == a.actor.epoch) {
    set_reader(r.epoch(), r.block(), r.agent(), scope(), cell.lanes | bit());
    return;
  }
  const bool many = r.agent() == kManyWarps && is_thread() && same_kind(r);
  const std::uint32_t floor = a.x.block->floor.epoch + 1;
  if (a.actor.epoch == floor && r.epoch() == floor && (plain || many)) {
    const std::uint32_t others = many ? cell.lanes : 1U << (r.agent() / 32);
    set_reader(floor, r.block(), kManyWarps, scope(), others | 1U << (a.actor.agent / 32));
    return;
  }
  if (knows_readers(r)) {
    start_readers();
    return;
  }
  add_reader(r);
}

/// Does whoever comes behind this read come behind the recorded ones too? Not behind a strong read,
/// which need not be ordered before a strong write.
bool CellAccess::knows_readers(Record r) const {
  if (r.agent() >= kAgents || (scope() != 0 && !same_kind(r))) return false;
  std::uint32_t unknown = 0;
  return knows(r, reader_of(r), unknown);
}

/// One of the warps that read, where it can be told.
CellAccess::WarpEpoch CellAccess::some_reader(Record r) const {
  const Grid& grid = *a.x.grid;
  if (r.block() - grid.first_number >= grid.blocks) return {};
  if (is_many_blocks(r)) {
    const bool by_warp = BlockReaders::of(cell.lanes).last_by_warp;
    return {r.agent() - kManyBlocks, r.epoch(), by_warp};
  }
  if (r.agent() == kManyWarps) {
    return {static_cast<std::uint32_t>(std::countr_zero(cell.lanes)), r.epoch(), true};
  }
  const auto* list = r.agent() == kReaderList ? list_of(r) : nullptr;
  const Reader one = list != nullptr ? list->front() : reader_of(r);
  if (one.agent >= grid.threads()) return {};
  return {one.agent / 32, one.epoch, one.scope == r.scope()};
}

/// Several blocks have read the word, this one last. A warp whose reads are stronger than those of
/// all together is not kept: they need not be ordered before a strong write.
void CellAccess::record_other_block(Record r) const {
  const std::uint32_t pc = cell.reader_pc, together = weakest(r.scope(), scope());
  const WarpEpoch before = some_reader(r);
  BlockReaders readers{r.block(), before.warp, before.by_warp, false};
  if (mine(r)) readers = BlockReaders::of(cell.lanes);
  readers.other_by_warp = readers.other_by_warp && r.scope() == together;
  readers.last_by_warp = is_thread() && scope() == together;
  const std::uint32_t warp = is_thread() ? a.actor.agent / 32 : 0;
  const std::uint32_t epoch = is_thread() ? a.actor.epoch : Record::kEpochLimit;
  set_reader(std::min(epoch, before.epoch), a.x.block->number, kManyBlocks + warp, together,
             readers.lanes());
  if (!same_size(pc, a.pc)) cell.reader_pc |= ~kPcMask;  // the size of no access
}

/// Several readers with several epochs: a list, until the next barrier of the block.
void CellAccess::add_reader(Record r) const {
  Block& block = *a.x.block;
  std::uint32_t index = cell.lanes;
  if (r.agent() != kReaderList) {
    index = block.take_list();
    auto& list = block.reader_lists[index];
    if (r.agent() != kManyWarps) list.push_back(reader_of(r));
    if (r.agent() == kManyWarps) {
      each_of_many(r, [&](const Reader& reader) {
        list.push_back(reader);
        return true;
      });
    }
  }
  auto& list = block.reader_lists[index];
  const std::uint32_t own = scope();
  std::erase_if(list, [&](const Reader& reader) {
    // A look at every other warp's entry would cost more than to keep it.
    const bool other = reader.agent != first() && reader.agent < block.threads;
    if (other && is_thread()) return false;
    if (own != 0 && (reader.scope != own || !same_size(reader.pc, a.pc))) return false;
    std::uint32_t unknown = 0;
    return knows(r, reader, unknown);
  });
  set_reader(block.floor.epoch + 1, block.number, kReaderList, weakest(r.scope(), own), index);
  for (Reader& reader : list) {
    if (reader.agent != first() || reader.epoch != a.actor.epoch || reader.any ||
        reader.scope != own || !same_size(reader.pc, a.pc)) {
      continue;
    }
    reader.lanes |= bit();
    reader.pc = a.pc;
    return;
  }
  list.push_back({first(), a.actor.epoch, bit(), a.pc, own, false});
}

/// One access to the bytes of a word that are in `mask`.
class WordAccess {
 public:
  WordAccess(const Party& a, const ShadowView& v, std::uint64_t word, std::uint32_t mask,
             bool equal)
      : a_(a),
        whole_{
            a,
            {v.writer[word], v.reader[word], v.lanes[word], v.writer_pc[word], v.reader_pc[word]},
            word,
            mask,
            equal},
        cell_(whole_.cell),
        mask_(mask) {}
  void note() const {
    if (cell_.writer != 0) check_writers();
    if (a_.access == Access::read) {
      record_read();
      return;
    }
    if (cell_.reader != 0) check_readers();
    record_write();
  }

 private:
  const Party& a_;
  const CellAccess whole_;
  const Cell& cell_;
  std::uint32_t mask_;

  static bool in_parts(std::uint64_t record) { return Record{record}.agent() == kInParts; }
  static bool are_parts(std::uint32_t mask, std::size_t count) {
    return count == 4 || mask == 3 || mask == 12 || mask == 15;
  }
  static bool is_pair(std::uint64_t record) {
    const std::uint32_t agent = Record{record}.agent();
    return agent >= kPairs && agent < kReaderList;
  }
  static std::uint64_t narrowed(std::uint64_t record, std::uint32_t mask) {
    const std::uint64_t bytes = record & mask;
    return bytes == 0 ? 0 : (record & ~std::uint64_t{15}) | bytes;
  }
  std::size_t at() const { return a_.target.word + whole_.word; }
  ShadowMap& map() const { return *a_.target.map; }
  template <class Each>
  bool each_part(std::span<Part> parts, Each each) const;
  std::span<Part> parts() const { return map().parts(at()); }
  std::span<Part> refine(std::uint32_t mask) const;
  void touch(std::uint64_t& record) const;
  std::uint32_t copy_list(std::uint64_t reader, std::uint32_t index) const;
  void drop_list(std::uint64_t reader, std::uint32_t index) const;
  template <class Check>
  void check_parts(std::uint64_t record, Check check) const;
  void check_writers() const;
  void check_readers() const;
  std::array<Part, 2> halves_of_pair() const;
  bool joins_pair(std::uint64_t record) const;
  bool is_of_pair(std::uint64_t record) const;
  std::uint64_t pair() const;
  void split_readers() const;
  void split_writers() const;
  void record_read() const;
  void clear_readers() const;
  bool holds_all_writers() const;
  void record_write() const;
  std::uint64_t own() const {
    return Record::make(a_.actor.epoch, a_.x.block->number, a_.actor.agent,
                        static_cast<std::uint32_t>(a_.strength), mask_)
        .bits;
  }
};

/// The parts with some of the access's bytes; until `each` says false.
template <class Each>
bool WordAccess::each_part(std::span<Part> parts, Each each) const {
  const auto bytes = static_cast<unsigned>(4 / parts.size());
  for (unsigned i = 0; i < parts.size(); ++i) {
    const std::uint32_t mask = ((1U << bytes) - 1) << (i * bytes);
    Part& p = parts[i];
    if ((mask & mask_) == 0) continue;
    const CellAccess part{a_,
                          {p.writer, p.reader, p.lanes, p.writer_pc, p.reader_pc},
                          whole_.word,
                          mask & mask_,
                          whole_.equal};
    if (!each(part)) return false;
  }
  return true;
}

/// Every part gets a list of its own: that of one may grow.
std::uint32_t WordAccess::copy_list(std::uint64_t reader, std::uint32_t index) const {
  const Record r{reader};
  if (r.agent() != kReaderList) return index;
  Block* owner = r.block() == a_.x.block->number ? a_.x.block : a_.x.grid->block_of(r.block());
  if (owner == nullptr || owner->floor.epoch >= r.epoch()) return index;
  const std::uint32_t copy = owner->take_list();
  owner->reader_lists[copy] = owner->reader_lists[index];
  return copy;
}

void WordAccess::drop_list(std::uint64_t reader, std::uint32_t index) const {
  const Record r{reader};
  if (r.agent() != kReaderList || r.block() != a_.x.block->number) return;
  if (r.epoch() > a_.x.block->floor.epoch) a_.x.block->free_list(index);
}

/// The word's parts, fine enough for `mask`.
std::span<Part> WordAccess::refine(std::uint32_t mask) const {
  const std::span<Part> before = parts();
  if (!before.empty() && are_parts(mask, before.size())) return before;
  const std::span<Part> all = map().split(at(), are_parts(mask, 2) ? 2 : 4);
  if (before.empty()) return all;
  for (unsigned i = 0; i < 4; ++i) {
    Part& p = all[i];
    if (in_parts(cell_.writer)) p.writer = narrowed(p.writer, 1U << i);
    if (!in_parts(cell_.reader)) continue;
    p.reader = narrowed(p.reader, 1U << i);
    if (i % 2 == 1) p.lanes = copy_list(p.reader, p.lanes);
  }
  return all;
}

/// A record that stands for the parts: one of them is accessed now.
void WordAccess::touch(std::uint64_t& record) const {
  const std::uint32_t block = std::max(Record{record}.block(), a_.x.block->number);
  if (in_parts(record) && Record{record}.block() == block) return;
  record = Record::make(Record::kEpochLimit, block, kInParts, 0, 15).bits;
}

/// The halves that a pair of threads wrote, or read.
std::array<Part, 2> WordAccess::halves_of_pair() const {
  std::array<Part, 2> out;
  for (std::uint32_t half = 0; half < 2; ++half) {
    auto of = [&](std::uint64_t record, std::uint32_t lane_bits) -> std::uint64_t {
      if (!is_pair(record)) return 0;
      const Record r{record};
      const std::uint32_t thread = 2 * (r.agent() - kPairs) + half;
      return Record::make(r.epoch(), r.block(), thread & ~lane_bits, 0, half == 0 ? 3 : 12).bits;
    };
    Part& p = out[half];
    p.writer = of(cell_.writer, 0);
    p.reader = of(cell_.reader, 31);
    p.writer_pc = cell_.writer_pc;
    p.reader_pc = cell_.reader_pc;
    p.lanes = 1U << ((2 * (Record{cell_.reader}.agent() - kPairs) + half) & 31);
  }
  return out;
}

/// Is the record the weak one of the thread before, of the lower half, where this accesses the
/// upper one?
bool WordAccess::joins_pair(std::uint64_t record) const {
  const std::uint32_t thread = a_.actor.agent - 1;
  if (mask_ != 12 || thread % 2 != 0 || thread >= a_.x.block->threads) return false;
  return record == Record::make(a_.actor.epoch, a_.x.block->number, thread, 0, 3).bits &&
         a_.strength == Strength::weak;
}

std::uint64_t WordAccess::pair() const {
  const std::uint32_t agent = kPairs + a_.actor.agent / 2;
  return Record::make(a_.actor.epoch, a_.x.block->number, agent, 0, 15).bits;
}

/// Does this only repeat what the record of a pair says?
bool WordAccess::is_of_pair(std::uint64_t record) const {
  return is_pair(record) && mask_ == (a_.actor.agent % 2 == 0 ? 3U : 12U) &&
         a_.strength == Strength::weak && a_.actor.agent < a_.x.block->threads && record == pair();
}

/// A check of all that the record of writers or of readers stands for.
template <class Check>
void WordAccess::check_parts(std::uint64_t record, Check check) const {
  if (is_pair(record)) {
    std::array<Part, 2> halves = halves_of_pair();
    each_part(halves, check);
  } else if (!in_parts(record)) {
    check(whole_);
  } else {
    each_part(parts(), check);
  }
}

void WordAccess::check_writers() const {
  if (is_of_pair(cell_.writer)) return;
  check_parts(cell_.writer, [](const CellAccess& part) { return part.check_writer(); });
}

void WordAccess::check_readers() const {
  check_parts(cell_.reader, [](const CellAccess& part) { return part.check_readers(); });
}

void WordAccess::split_readers() const {
  const std::uint64_t r = cell_.reader;
  const std::uint32_t bytes = Record{r}.mask();
  const std::span<Part> parts = refine(are_parts(bytes, 2) ? mask_ : 1);
  const auto size = static_cast<unsigned>(4 / parts.size());
  if (is_pair(r)) {
    const std::array<Part, 2> halves = halves_of_pair();
    for (unsigned i = 0; i < parts.size(); ++i) {
      const Part& half = halves[i * size / 2];
      parts[i].reader = narrowed(half.reader, ((1U << size) - 1) << (i * size));
      parts[i].reader_pc = half.reader_pc;
      parts[i].lanes = half.lanes;
    }
    touch(cell_.reader);
    return;
  }
  bool first = true;
  for (unsigned i = 0; i < parts.size(); ++i) {
    Part& p = parts[i];
    p.reader = narrowed(r, ((1U << size) - 1) << (i * size));
    p.reader_pc = cell_.reader_pc;
    p.lanes = first || p.reader == 0 ? cell_.lanes : copy_list(r, cell_.lanes);
    first = first && p.reader == 0;
  }
  touch(cell_.reader);
}

void WordAccess::split_writers() const {
  const std::uint64_t r = cell_.writer;
  const std::uint32_t bytes = Record{r}.mask();
  const std::span<Part> parts = refine(are_parts(bytes, 2) ? mask_ : 1);
  const auto size = static_cast<unsigned>(4 / parts.size());
  const std::array<Part, 2> halves = halves_of_pair();
  for (unsigned i = 0; i < parts.size(); ++i) {
    const std::uint64_t of = is_pair(r) ? halves[i * size / 2].writer : r;
    parts[i].writer = narrowed(of, ((1U << size) - 1) << (i * size));
    parts[i].writer_pc = cell_.writer_pc;
  }
  touch(cell_.writer);
}

void WordAccess::record_read() const {
  if (!in_parts(cell_.reader)) {
    const bool first = mask_ == 12 && cell_.lanes == 1U << ((a_.actor.agent - 1) & 31);
    if (is_of_pair(cell_.reader)) return;
    if (first && joins_pair(cell_.reader | ((a_.actor.agent - 1) & 31) << Record::kAgentShift)) {
      cell_.reader = pair();
      cell_.reader_pc = a_.pc;
      return;
    }
    if (whole_.holds_all_readers()) {
      whole_.record_read();
      return;
    }
    split_readers();
  }
  touch(cell_.reader);
  each_part(refine(mask_), [](const CellAccess& part) {
    part.record_read();
    return true;
  });
}

/// Whoever comes behind this write comes behind the reads before it.
void WordAccess::clear_readers() const {
  if (cell_.reader == 0) return;
  if (in_parts(cell_.reader) && mask_ != 15) {
    each_part(refine(mask_), [&](const CellAccess& part) {
      drop_list(part.cell.reader, part.cell.lanes);
      part.cell.reader = 0;
      return true;
    });
    return;
  }
  if (is_pair(cell_.reader) && mask_ != 15) {
    split_readers();
    clear_readers();
    return;
  }
  const std::uint64_t left = narrowed(cell_.reader, 15 & ~mask_);
  if (left == 0) drop_list(cell_.reader, cell_.lanes);
  cell_.reader = left;
}

/// Can one record say who wrote the word's bytes, this access included?
bool WordAccess::holds_all_writers() const {
  const Record r{cell_.writer}, me{own()};
  const bool again = ((r.bits ^ me.bits) & ~std::uint64_t{15}) == 0 && r.scope() == 0;
  if (r.bits == 0 || (r.mask() & ~mask_) == 0 || again) return true;
  if (a_.target.owner == nullptr) return r.block() < a_.x.run->first_unordered;
  const Cluster& c = *a_.target.owner->cluster;
  return r.block() - c.number >= c.blocks.size();
}

void WordAccess::record_write() const {
  clear_readers();
  if (is_of_pair(cell_.writer)) return;
  if (joins_pair(cell_.writer)) {
    cell_.writer = pair();
    cell_.writer_pc = a_.pc;
    return;
  }
  if (mask_ == 15 || (!in_parts(cell_.writer) && holds_all_writers())) {
    const Record r{cell_.writer};
    const bool again = ((r.bits ^ own()) & ~std::uint64_t{15}) == 0;
    cell_.writer = own() | (again ? r.mask() : 0);
    cell_.writer_pc = a_.pc;
    return;
  }
  if (!in_parts(cell_.writer)) split_writers();
  touch(cell_.writer);
  each_part(refine(mask_), [&](const CellAccess& part) {
    part.cell.writer = narrowed(own(), part.mask);
    part.cell.writer_pc = a_.pc;
    return true;
  });
}

}  // namespace

void note_access(Exec& x, unsigned lane, const ShadowTarget& target, std::uint64_t address,
                 std::int64_t bytes, Access access, Strength strength, const Actor& actor,
                 const std::byte* fresh, const std::byte* old) {
  const std::uint64_t begin = address - target.address;
  const std::uint64_t end = begin + static_cast<std::uint64_t>(bytes);
  const ShadowView view = target.map->view(target.word, (end + 3) / 4);
  const auto size = static_cast<std::uint32_t>(strength == Strength::weak ? 0 : bytes);
  const Party party{x, lane, target, access, strength, actor, sized_pc(x.pc, size)};
  for (std::uint64_t word = begin / 4; word * 4 < end; ++word) {
    const std::uint64_t from = std::max(begin, word * 4);
    const std::uint64_t to = std::min(end, word * 4 + 4);
    const auto mask = static_cast<std::uint32_t>(((1U << (to - from)) - 1) << (from - word * 4));
    const bool equal = fresh != nullptr &&
                       std::memcmp(fresh + (from - begin), old + (from - begin), to - from) == 0;
    WordAccess(party, view, word, mask, equal).note();
  }
}

void note_vector(Exec& x, unsigned lane, const ShadowTarget& target, std::uint64_t address,
                 const Elements& elements, Access access, Strength strength, const Actor& actor,
                 const std::byte* fresh, const std::byte* old) {
  if (strength == Strength::weak || elements.count == 1) {
    note_access(x, lane, target, address, elements.bytes * elements.count, access, strength, actor,
                fresh, old);
    return;
  }
  for (std::int64_t i = 0; i < elements.count; ++i) {
    const std::int64_t at = i * elements.bytes;
    note_access(x, lane, target, address + static_cast<std::uint64_t>(at), elements.bytes, access,
                strength, actor, fresh == nullptr ? nullptr : fresh + at,
                fresh == nullptr ? nullptr : old + at);
  }
}

}  // namespace tilewright::emu::detail
