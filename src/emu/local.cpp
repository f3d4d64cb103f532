// SPDX-License-Identifier: Apache-2.0
// Local memory, interleaved by lane, and the read-only parameters of the launch.
#include "emu/local.h"

#include <bit>
#include <cstring>

namespace tilewright::emu::detail {

namespace {

bool local_fault(Exec& x, unsigned lane, std::uint64_t address, std::int64_t bytes,
                 const char* verb) {
  const std::uint64_t size = x.warp->local.size() * 4;
  const std::uint64_t offset = address - kLocalBase;
  if (offset < size && size - offset >= static_cast<std::uint64_t>(bytes)) return false;
  if (x.checks(Kind::out_of_bounds)) {
    report(x, {.kind = Kind::out_of_bounds,
               .lane = lane,
               .message = std::string(verb) + " " + std::to_string(bytes) +
                          " bytes at local address " + hex(address) + ", outside the thread's " +
                          std::to_string(size) + " bytes of local memory",
               .range = Range{"local", address, static_cast<std::uint32_t>(bytes), {}},
               .other = {}});
  }
  return true;
}

bool aligned(Exec& x, unsigned lane, std::uint64_t address, std::int64_t bytes) {
  if (address % static_cast<std::uint64_t>(bytes) == 0) return true;
  if (x.checks(Kind::misaligned)) {
    report(x, {.kind = Kind::misaligned,
               .lane = lane,
               .message = "accesses " + std::to_string(bytes) + " bytes at local address " +
                          hex(address) + ", which is no multiple of " + std::to_string(bytes),
               .range = Range{"local", address, static_cast<std::uint32_t>(bytes), {}},
               .other = {}});
  }
  return false;
}

const Slot& element(const Inst& in, int operand, int i) {
  return in.slot[in.info->start[static_cast<std::size_t>(operand)] + static_cast<unsigned>(i)];
}

void set_element(Exec& x, const Slot& slot, unsigned lane, const std::byte* from,
                 const OpInfo& info, bool defined) {
  if (slot.cls == Class::sink) return;
  std::uint64_t half[2] = {0, 0};
  std::memcpy(half, from, static_cast<std::size_t>(info.bytes));
  x.set(slot, lane, extended(half[0], info.bytes, info.type));
  if (info.bytes == 16) x.lanes<std::uint64_t>(slot)[32 + lane] = half[1];
  if (!defined) x.defined(slot) &= ~(1U << lane);
}

}  // namespace

bool read_local(Exec& x, unsigned lane, std::uint64_t address, std::int64_t bytes, std::byte* out,
                bool& defined) {
  if (local_fault(x, lane, address, bytes, "reads")) return false;
  defined = true;
  for (std::int64_t i = 0; i < bytes; ++i) {
    const std::uint64_t at = address - kLocalBase + static_cast<std::uint64_t>(i);
    const LocalRow& row = x.warp->local[at / 4];
    out[i] = static_cast<std::byte>(row.data[lane] >> (8 * (at % 4)));
    defined &= (row.init[at % 4] >> lane & 1) != 0;
  }
  return true;
}

bool write_local(Exec& x, unsigned lane, std::uint64_t address, std::int64_t bytes,
                 const std::byte* from, bool defined) {
  if (local_fault(x, lane, address, bytes, "writes")) return false;
  for (std::int64_t i = 0; i < bytes; ++i) {
    const std::uint64_t at = address - kLocalBase + static_cast<std::uint64_t>(i);
    LocalRow& row = x.warp->local[at / 4];
    const auto shift = static_cast<std::uint32_t>(8 * (at % 4));
    row.data[lane] = (row.data[lane] & ~(0xffU << shift)) | static_cast<std::uint32_t>(from[i])
                                                                << shift;
    auto& init = row.init[at % 4];
    init = (init & ~(1U << lane)) | static_cast<std::uint32_t>(defined) << lane;
  }
  return true;
}

void copy_local(Exec& x, unsigned lane, std::uint64_t from, std::uint64_t to, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; ++i) {
    std::byte b{};
    bool defined = true;
    const auto offset = static_cast<std::uint64_t>(i);
    if (!read_local(x, lane, from + offset, 1, &b, defined)) return;
    if (!write_local(x, lane, to + offset, 1, &b, defined)) return;
  }
}

void load_local(Exec& x, const Inst& in, const Addresses& a, int data_operand) {
  const OpInfo& info = *in.info;
  for (std::uint32_t left = a.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    std::byte bytes[32] = {};
    bool whole = true;
    const bool good = aligned(x, lane, a.at[lane], info.bytes * info.vec);
    for (int i = 0; i < info.vec; ++i) {
      bool defined = true;
      const auto at = a.at[lane] + static_cast<std::uint64_t>(i * info.bytes);
      if (good && whole) whole = read_local(x, lane, at, info.bytes, bytes, defined);
      set_element(x, element(in, data_operand, i), lane, bytes, info, defined);
    }
  }
  x.grid->report.counters.local_bytes +=
      static_cast<std::uint64_t>(std::popcount(a.mask) * info.bytes * info.vec);
}

void store_local(Exec& x, const Inst& in, const Addresses& a, int data_operand) {
  const OpInfo& info = *in.info;
  for (std::uint32_t left = a.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    if (!aligned(x, lane, a.at[lane], info.bytes * info.vec)) continue;
    for (int i = 0; i < info.vec; ++i) {
      const Slot& slot = element(in, data_operand, i);
      std::uint64_t half[2] = {x.value(slot, lane), 0};
      if (info.bytes == 16) half[1] = x.lanes<const std::uint64_t>(slot)[32 + lane];
      const bool defined = (x.defined(slot) >> lane & 1) != 0;
      const auto at = a.at[lane] + static_cast<std::uint64_t>(i * info.bytes);
      if (!write_local(x, lane, at, info.bytes, reinterpret_cast<const std::byte*>(half),
                       defined)) {
        break;
      }
    }
  }
  x.grid->report.counters.local_bytes +=
      static_cast<std::uint64_t>(std::popcount(a.mask) * info.bytes * info.vec);
}

void load_param(Exec& x, const Inst& in, const Addresses& a, int data_operand) {
  const OpInfo& info = *in.info;
  const auto size = static_cast<std::uint64_t>(x.grid->params.size());
  const auto bytes = static_cast<std::uint64_t>(info.bytes * info.vec);
  for (std::uint32_t left = a.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t at = a.at[lane];
    std::byte data[32] = {};
    if (at > size || size - at < bytes) {
      report(x, {.kind = Kind::out_of_bounds,
                 .lane = lane,
                 .message = "reads " + std::to_string(bytes) + " bytes at parameter offset " +
                            std::to_string(at) + " of " + std::to_string(size),
                 .range = Range{"param", at, static_cast<std::uint32_t>(bytes), {}},
                 .other = {}});
    } else {
      std::memcpy(data, x.grid->params.data() + at, bytes);
    }
    for (int i = 0; i < info.vec; ++i) {
      set_element(x, element(in, data_operand, i), lane, data + i * info.bytes, info, true);
    }
  }
}

}  // namespace tilewright::emu::detail
