// SPDX-License-Identifier: Apache-2.0
// Rows: the 32 lanes of a warp access consecutive elements.
#pragma once

#include "emu/access.h"

#include <cstdint>
#include <optional>

namespace tilewright::emu::detail {

/// Where a row begins.
struct RowPlace {
  Space space = Space::generic;
  std::uint64_t address = 0;
};
/// The row that the lanes' addresses in operand `index` make, `lane_bytes` apart: all lanes are
/// active, all addresses defined, and the first is aligned to the element.
std::optional<RowPlace> find_row(const Exec& x, const Inst& in, int index, Space space,
                                 std::int64_t lane_bytes);

/// ld and st of a row. False, with nothing done, if it is none or something may be amiss.
bool load_row(Exec& x, const Inst& in);
bool store_row(Exec& x, const Inst& in);

}  // namespace tilewright::emu::detail
