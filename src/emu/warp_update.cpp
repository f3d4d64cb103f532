// SPDX-License-Identifier: Apache-2.0
// Atomics of a whole warp: one look at the memory, one loop over the lanes.
#include "emu/warp_update.h"

#include "emu/atom_op.h"
#include "emu/row.h"
#include "emu/traffic.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tilewright::emu::detail {

namespace {

/// One element of 4 or 8 bytes a lane, in registers as wide, without acquire or release.
bool is_plain(const Update& u) {
  if (u.info.vec != 1 || (u.info.bytes != 4 && u.info.bytes != 8)) return false;
  const LaneClocks& c = u.x.warp->clocks;
  const Order order = u.info.order;
  const Class cls = u.info.bytes == 8 ? Class::b64 : Class::b32;
  const bool fits = u.slot(u.value, 0).cls == cls &&
                    (u.result < 0 || u.slot(u.result, 0).cls == cls) &&
                    (u.info.atom != AtomOp::cas || u.slot(u.compare, 0).cls == cls);
  const bool takes = u.result >= 0 && !u.x.run->sync_words.empty();
  return fits && (order == Order::weak || order == Order::relaxed) && !takes && !c.each &&
         !c.common.fenced;
}

/// The registers of all lanes; those without a result write to `unused`.
template <class T>
struct Lanes {
  std::array<T, 32> unused;
  const T* value;
  const T* swap;  ///< of cas
  T* result;

  explicit Lanes(const Update& u)
      : value(u.x.lanes<const T>(u.slot(u.value, 0))),
        swap(u.info.atom == AtomOp::cas ? u.x.lanes<const T>(u.slot(u.compare, 0)) : value),
        result(u.result >= 0 ? u.x.lanes<T>(u.slot(u.result, 0)) : unused.data()) {}
};

/// Calls `each(T{}, f)` with the type of the elements and the operation; counts changed elements.
template <class Each>
void apply(const Update& u, Space space, Each each) {
  const bool flush = space == Space::global;
  const auto with = [&]<class T>(T) {
    return with_operation<T>(u.info.atom, u.info.type, flush, [&](auto f) { return each(T{}, f); });
  };
  u.x.run->version += u.info.bytes == 8 ? with(std::uint64_t{}) : with(std::uint32_t{});
  if (u.result >= 0) u.x.defined(u.slot(u.result, 0)) |= u.x.mask;
}

template <class T, class F>
std::uint64_t change_row(const Update& u, std::byte* data, F f) {
  const Lanes<T> lanes(u);
  std::array<T, 32> old, fresh;
  std::memcpy(old.data(), data, sizeof old);
  T changes = 0;
  for (unsigned l = 0; l < 32; ++l) {
    fresh[l] = f(old[l], lanes.value[l], lanes.swap[l]);
    changes += static_cast<T>(fresh[l] != old[l]);
  }
  std::memcpy(data, fresh.data(), sizeof fresh);
  std::memcpy(lanes.result, old.data(), sizeof old);
  return changes;
}

/// `at`: bytes behind the first element.
template <class T, class F>
std::uint64_t change_scattered(const Update& u, const std::array<std::uint32_t, 32>& at,
                               std::byte* data, F f) {
  const Lanes<T> lanes(u);
  std::uint64_t changes = 0;
  for_lanes(u.x.mask, [&](unsigned l) {
    T old;
    std::memcpy(&old, data + at[l], sizeof old);
    const T fresh = f(old, lanes.value[l], lanes.swap[l]);
    std::memcpy(data + at[l], &fresh, sizeof fresh);
    lanes.result[l] = old;
    changes += static_cast<std::uint64_t>(fresh != old);
  });
  return changes;
}

/// Where the elements lie; the others' distances from the first in bytes.
struct Extent {
  std::uint64_t first = 0, bytes = 0;
  bool fits = false;  ///< in a page's worth of bytes, and each element is aligned
  std::array<std::uint32_t, 32> at{};

  Extent(const Addresses& a, std::uint32_t element_bytes) {
    constexpr auto kReach = static_cast<std::uint64_t>(kPageBytes);
    const std::uint64_t some = a.at[static_cast<unsigned>(std::countr_zero(a.mask))];
    std::uint64_t far = 0, low_bits = 0;
    for_lanes(a.mask, [&](unsigned lane) {
      const std::uint64_t distance = a.at[lane] - some + kReach;
      far |= distance & ~(2 * kReach - 1);
      low_bits |= a.at[lane];
      at[lane] = static_cast<std::uint32_t>(distance - kReach);
    });
    std::int32_t least = 0, most = 0;  // 32-bit maxima are vector code
    for (const std::uint32_t distance : at) {
      least = std::min(least, static_cast<std::int32_t>(distance));
      most = std::max(most, static_cast<std::int32_t>(distance));
    }
    for (std::uint32_t& distance : at)
      distance -= static_cast<std::uint32_t>(least);
    first = some - static_cast<std::uint64_t>(-std::int64_t{least});
    bytes = static_cast<std::uint64_t>(std::int64_t{most} - least) + element_bytes;
    fits = far == 0 && (low_bits & (element_bytes - 1)) == 0 && bytes <= kReach;
  }
};

}  // namespace

bool update_row(const Update& u) {
  Exec& x = u.x;
  if (!is_plain(u)) return false;
  const auto row = find_row(x, u.in, u.address, u.info.space, u.info.bytes);
  if (!row) return false;
  const Space space = row->space;
  if (space != Space::global && space != Space::shared && space != Space::shared_cluster) {
    return false;
  }
  Located l;
  const std::int64_t bytes = 32 * u.info.bytes;
  if (!locate_quietly(x, space, row->address, bytes, Purpose::update, l)) return false;
  if (!is_initialized(l, 0, bytes)) return false;
  const auto words = static_cast<unsigned>(u.info.bytes / 4);
  const RowAccess access{words, Access::atomic, u.strength(), false, 4 * words};
  if (l.shadowed && !note_row(x, l.target, access)) return false;
  if (!x.grid->counts.empty() && u.info.space != Space::generic) {
    count_access(x, space, read_addresses(x, u.in, u.address), u.info.bytes, Access::atomic);
  }
  apply(u, space, [&]<class T>(T, auto f) { return change_row<T>(u, l.data, f); });
  return true;
}

bool update_scattered(const Update& u, const Addresses& a) {
  Exec& x = u.x;
  const Space space = u.info.space;
  if ((space != Space::global && space != Space::shared) || !is_plain(u)) return false;
  const Extent all(a, static_cast<std::uint32_t>(u.info.bytes));
  if (!all.fits) return false;
  const auto bytes = static_cast<std::int64_t>(all.bytes);
  Located l;
  if (!locate_quietly(x, space, all.first, bytes, Purpose::update, l)) return false;
  if (!is_initialized(l, 0, bytes)) return false;
  const auto words = static_cast<unsigned>(u.info.bytes / 4);
  if (l.shadowed && !note_updates(x, l.target, {all.at, words, u.strength()})) return false;
  count_access(x, space, a, u.info.bytes, Access::atomic);
  apply(u, space, [&]<class T>(T, auto f) { return change_scattered<T>(u, all.at, l.data, f); });
  return true;
}

}  // namespace tilewright::emu::detail
