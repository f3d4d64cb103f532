// SPDX-License-Identifier: Apache-2.0
// ldmatrix, stmatrix, movmatrix: 8x8 matrices of 16-bit elements between shared memory and lanes.
#include "emu/access.h"
#include "emu/gather.h"
#include "emu/handlers.h"
#include "emu/traffic.h"

#include <bit>
#include <cstring>

namespace tilewright::emu::detail {

namespace {

constexpr unsigned kRows = 8;
constexpr std::int64_t kRowBytes = 16;

using Matrix = std::array<std::array<std::uint16_t, 8>, 8>;
struct Loaded {
  Matrix value{};
  std::array<std::uint8_t, 8> defined{};  ///< by row
};

unsigned matrices(const Inst& in) {
  return in.info->has<"x4">() ? 4 : in.info->has<"x2">() ? 2 : 1;
}

/// Window addresses of the rows; generic ones must lie in shared memory.
std::uint64_t row_address(Exec& x, const Inst& in, const Addresses& a, unsigned lane) {
  static_cast<void>(x);
  const std::uint64_t at = a.at[lane];
  return in.info->space == Space::generic && space_of(at) == Space::shared ? at % kWindowBytes : at;
}

/// Each word of a row is an access of the lane that gets or gives it.
void note_row_words(Exec& x, const Located& l, std::uint64_t address, unsigned row, Access access) {
  if (!l.shadowed) return;
  for (unsigned w = 0; w < 4; ++w) {
    const unsigned lane = 4 * row + w;
    ShadowTarget target = l.target;
    note_access(x, lane, target, address + 4 * w, 4, access, Strength::weak, thread_actor(x, lane));
  }
}

}  // namespace

Flow exec_ldmatrix(Exec& x, const Inst& in) {
  if (gather_aligned(x) == Gather::wait) return Flow::stop;
  const unsigned count = matrices(in);
  const bool transposed = in.info->has<"trans">();
  Addresses a = read_addresses(x, in, 1);
  a.mask &= count == 4 ? ~std::uint32_t{0} : (1U << (8 * count)) - 1;
  count_access(x, Space::shared, a, kRowBytes, Access::read);
  for (unsigned m = 0; m < count; ++m) {
    Loaded loaded;
    for (unsigned row = 0; row < kRows; ++row) {
      const unsigned lane = 8 * m + row;
      const std::uint64_t at = row_address(x, in, a, lane);
      Located l;
      if (!locate(x, lane, Space::shared, at, kRowBytes, kRowBytes, Purpose::read, l)) {
        loaded.defined[row] = 1;
        continue;
      }
      note_row_words(x, l, at, row, Access::read);
      std::memcpy(loaded.value[row].data(), l.data, kRowBytes);
      loaded.defined[row] = is_initialized(l, 0, kRowBytes);
    }
    const Slot& d = in.slot[in.info->start[0] + m];
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned r = lane / 4, c = 2 * (lane % 4);
      const std::uint32_t low = transposed ? loaded.value[c][r] : loaded.value[r][c];
      const std::uint32_t high = transposed ? loaded.value[c + 1][r] : loaded.value[r][c + 1];
      x.set(d, lane, high << 16 | low);
      const bool good =
          transposed ? (loaded.defined[c] & loaded.defined[c + 1]) != 0 : loaded.defined[r] != 0;
      if (!good && d.cls != Class::sink) x.defined(d) &= ~(1U << lane);
    }
  }
  return Flow::next;
}

Flow exec_stmatrix(Exec& x, const Inst& in) {
  if (gather_aligned(x) == Gather::wait) return Flow::stop;
  const unsigned count = matrices(in);
  const bool transposed = in.info->has<"trans">();
  Addresses a = read_addresses(x, in, 0);
  a.mask &= count == 4 ? ~std::uint32_t{0} : (1U << (8 * count)) - 1;
  count_access(x, Space::shared, a, kRowBytes, Access::write);
  x.run->changed();
  for (unsigned m = 0; m < count; ++m) {
    const Slot& s = in.slot[in.info->start[1] + m];
    Matrix value{};
    std::array<bool, 8> defined;
    defined.fill(true);
    for (unsigned lane = 0; lane < 32; ++lane) {
      const auto word = static_cast<std::uint32_t>(x.value(s, lane));
      const unsigned r = lane / 4, c = 2 * (lane % 4);
      const auto low = static_cast<std::uint16_t>(word),
                 high = static_cast<std::uint16_t>(word >> 16);
      (transposed ? value[c][r] : value[r][c]) = low;
      (transposed ? value[c + 1][r] : value[r][c + 1]) = high;
      if ((x.defined(s) >> lane & 1) == 0) {
        defined[transposed ? c : r] = false;
        if (transposed) defined[c + 1] = false;
      }
    }
    for (unsigned row = 0; row < kRows; ++row) {
      const unsigned lane = 8 * m + row;
      const std::uint64_t at = row_address(x, in, a, lane);
      Located l;
      if (!locate(x, lane, Space::shared, at, kRowBytes, kRowBytes, Purpose::write, l)) continue;
      note_row_words(x, l, at, row, Access::write);
      std::memcpy(l.data, value[row].data(), kRowBytes);
      set_initialized(l, 0, kRowBytes, defined[row]);
    }
  }
  return Flow::next;
}

/// movmatrix: an 8x8 matrix in registers, transposed.
Flow exec_movmatrix(Exec& x, const Inst& in) {
  if (gather_aligned(x) == Gather::wait) return Flow::stop;
  const Slot &d = in.slot[in.info->start[0]], &s = in.slot[in.info->start[1]];
  Matrix value{};
  for (unsigned lane = 0; lane < 32; ++lane) {
    const auto word = static_cast<std::uint32_t>(x.value(s, lane));
    value[lane / 4][2 * (lane % 4)] = static_cast<std::uint16_t>(word);
    value[lane / 4][2 * (lane % 4) + 1] = static_cast<std::uint16_t>(word >> 16);
  }
  const bool defined = x.defined(s) == ~std::uint32_t{0};
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned r = lane / 4, c = 2 * (lane % 4);
    x.set(d, lane, static_cast<std::uint32_t>(value[c + 1][r]) << 16 | value[c][r]);
  }
  if (!defined) x.defined(d) = 0;
  return Flow::next;
}

}  // namespace tilewright::emu::detail
