// SPDX-License-Identifier: Apache-2.0
// ld and st of 32 consecutive elements at once, which most accesses are.
#include "emu/row.h"

#include "emu/traffic.h"

#include <bit>
#include <cstring>

namespace tilewright::emu::detail {

namespace {

constexpr unsigned kLanes = 32;

/// Does lane l have `at[0] + (l << shift)`?
template <class Word>
bool is_row(const Word* at, unsigned shift) {
  static constexpr std::array<Word, kLanes> kLane = [] {
    std::array<Word, kLanes> out{};
    for (unsigned l = 0; l < kLanes; ++l)
      out[l] = l;
    return out;
  }();
  Word differ = 0;
  for (unsigned l = 0; l < kLanes; ++l)
    differ |= (at[l] - at[0]) ^ (kLane[l] << shift);
  return differ == 0;
}

/// The space of a generic row, and its address there.
std::optional<RowPlace> place(std::uint64_t address, std::int64_t bytes) {
  const Space space = space_of(address);
  if (space != space_of(address + static_cast<std::uint64_t>(bytes) - 1)) return {};
  if (space == Space::global) return RowPlace{space, address};
  // A generic address reaches the shared memory of the whole cluster.
  if (space == Space::shared) return RowPlace{Space::shared_cluster, address % kWindowBytes};
  return {};
}

template <class Word>
void from_row(Exec& x, const Slot* to, int vec, const std::byte* from) {
  if (vec == 1) {
    std::memcpy(x.lanes<Word>(to[0]), from, sizeof(Word) * kLanes);
  } else {
    std::array<Word, 4 * kLanes> row;
    const auto count = static_cast<unsigned>(vec);
    std::memcpy(row.data(), from, sizeof(Word) * kLanes * count);
    for (unsigned i = 0; i < count; ++i) {
      Word* out = x.lanes<Word>(to[i]);
      for (unsigned l = 0; l < kLanes; ++l)
        out[l] = row[l * count + i];
    }
  }
  for (int i = 0; i < vec; ++i)
    x.defined(to[i]) = ~std::uint32_t{0};
}

template <class Word>
void to_row(const Exec& x, const Slot* from, int vec, std::byte* to) {
  if (vec == 1) {
    std::memcpy(to, x.lanes<const Word>(from[0]), sizeof(Word) * kLanes);
    return;
  }
  std::array<Word, 4 * kLanes> row;
  const auto count = static_cast<unsigned>(vec);
  for (unsigned i = 0; i < count; ++i) {
    const Word* in = x.lanes<const Word>(from[i]);
    for (unsigned l = 0; l < kLanes; ++l)
      row[l * count + i] = in[l];
  }
  std::memcpy(to, row.data(), sizeof(Word) * kLanes * count);
}

void count_row(Exec& x, const Inst& in, int address_operand, Space space, Access access) {
  if (x.grid->counts.empty()) return;
  count_access(x, space, read_addresses(x, in, address_operand), 4 * in.row_words, access);
}

bool can_be_row(Space space) {
  return space == Space::generic || space == Space::global || space == Space::shared ||
         space == Space::shared_cluster || space == Space::const_;
}

}  // namespace

std::optional<RowPlace> find_row(const Exec& x, const Inst& in, int index, Space space,
                                 std::int64_t lane_bytes) {
  if (x.mask != ~std::uint32_t{0}) return {};
  const auto i = static_cast<std::size_t>(index);
  const Slot& slot = in.slot[in.info->start[i]];
  if (x.defined(slot) != ~std::uint32_t{0}) return {};
  const auto offset = static_cast<std::uint64_t>(in.info->offset[i]);
  const auto shift = static_cast<unsigned>(std::countr_zero(static_cast<unsigned>(lane_bytes)));
  std::uint64_t address = 0;
  if (slot.cls == Class::b64) {
    const auto* at = x.lanes<const std::uint64_t>(slot);
    if (!is_row(at, shift)) return {};
    address = at[0] + offset;
  } else if (slot.cls == Class::b32) {
    const auto* at = x.lanes<const std::uint32_t>(slot);
    if (!is_row(at, shift)) return {};
    address = static_cast<std::uint32_t>(at[0] + offset);
  } else {
    return {};
  }
  if (address % static_cast<std::uint64_t>(lane_bytes) != 0) return {};
  if (space == Space::generic) return place(address, kLanes * lane_bytes);
  return RowPlace{space, address};
}

bool load_row(Exec& x, const Inst& in) {
  const OpInfo& info = *in.info;
  if (in.row_words == 0 || !can_be_row(info.space)) return false;
  const auto row = find_row(x, in, 1, info.space, 4 * in.row_words);
  if (!row) return false;
  const std::int64_t bytes = std::int64_t{4 * kLanes} * in.row_words;
  Located l;
  if (!locate_quietly(x, row->space, row->address, bytes, Purpose::read, l)) return false;
  if (l.data == nullptr || !is_initialized(l, 0, bytes)) return false;
  const RowAccess access{in.row_words, Access::read, strength_of(info), false,
                         static_cast<std::uint32_t>(info.bytes)};
  if (l.shadowed && !note_row(x, l.target, access)) return false;
  count_row(x, in, 1, row->space, Access::read);
  const Slot* to = in.slot + info.start[0];
  if (info.bytes == 4) {
    from_row<std::uint32_t>(x, to, info.vec, l.data);
  } else {
    from_row<std::uint64_t>(x, to, info.vec, l.data);
  }
  return true;
}

bool store_row(Exec& x, const Inst& in) {
  const OpInfo& info = *in.info;
  if (in.row_words == 0 || !can_be_row(info.space)) return false;
  const Slot* from = in.slot + info.start[1];
  for (int i = 0; i < info.vec; ++i) {
    if (x.defined(from[i]) != ~std::uint32_t{0}) return false;
  }
  const auto row = find_row(x, in, 0, info.space, 4 * in.row_words);
  if (!row) return false;
  const std::int64_t bytes = std::int64_t{4 * kLanes} * in.row_words;
  Located l;
  if (!locate_quietly(x, row->space, row->address, bytes, Purpose::write, l)) return false;
  const RowAccess access{in.row_words, Access::write, strength_of(info), false,
                         static_cast<std::uint32_t>(info.bytes)};
  if (l.shadowed && !note_row(x, l.target, access)) return false;
  count_row(x, in, 0, row->space, Access::write);
  x.run->changed();
  if (info.bytes == 4) {
    to_row<std::uint32_t>(x, from, info.vec, l.data);
  } else {
    to_row<std::uint64_t>(x, from, info.vec, l.data);
  }
  set_initialized(l, 0, bytes, true);
  return true;
}

}  // namespace tilewright::emu::detail
