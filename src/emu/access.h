// SPDX-License-Identifier: Apache-2.0
// Finds and checks the bytes behind an address: bounds, alignment, space, initialised bytes.
#pragma once

#include "emu/grid.h"
#include "emu/race.h"

#include <array>
#include <cstdint>

namespace tilewright::emu::detail {

/// One lane's bytes, or a whole warp's contiguous ones.
struct Located {
  std::byte* data = nullptr;      ///< null: pages that nothing was written to (reads as zeros)
  std::uint64_t* init = nullptr;  ///< the bitmap, a bit a byte
  std::int64_t init_bit = 0;      ///< of the first byte
  ShadowTarget target;
  bool shadowed = false;
  Allocation* allocation = nullptr;
};

struct Addresses {
  std::array<std::uint64_t, 32> at{};
  std::uint32_t mask = 0;
};

/// Addresses of operand `index`, and a report if a lane's is undefined.
Addresses read_addresses(Exec& x, const Inst& in, int index);
/// The space a generic address lies in.
Space space_of(std::uint64_t address);
/// Splits generic addresses by space; each part has window-relative addresses.
struct SpacePart {
  Space space;
  Addresses addresses;
};
int split_by_space(const Addresses& generic, std::array<SpacePart, 5>& parts);

enum class Purpose : std::uint8_t { read, write, update };
/// Checks [address, address + bytes) of a space for a lane and finds it. Reports and returns false
/// if it is out of bounds, freed or misaligned (alignment 0: unchecked). Global and shared only.
bool locate(Exec& x, unsigned lane, Space space, std::uint64_t address, std::int64_t bytes,
            std::int64_t alignment, Purpose purpose, Located& out);
/// As locate, but says nothing where it fails: the caller goes lane by lane.
bool locate_quietly(Exec& x, Space space, std::uint64_t address, std::int64_t bytes,
                    Purpose purpose, Located& out);

bool is_initialized(const Located& l, std::int64_t offset, std::int64_t bytes);
void set_initialized(const Located& l, std::int64_t offset, std::int64_t bytes, bool defined);
void report_uninitialized(Exec& x, unsigned lane, const ShadowTarget& target, std::uint64_t address,
                          std::int64_t bytes);
/// A register without a defined value where that matters: `use` is "address", "value stored", ...
void report_undefined(Exec& x, std::uint32_t lanes, std::string_view use);

bool race_checked(const Exec& x);
Strength strength_of(const OpInfo& info);

}  // namespace tilewright::emu::detail
