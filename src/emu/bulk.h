// SPDX-License-Identifier: Apache-2.0
// Ranges of bytes that bulk copies move: bounds, race check, and the bytes themselves.
#pragma once

#include "emu/access.h"

#include <span>

namespace tilewright::emu::detail {

/// Checks a range; sets `owner` to the block if it is shared memory.
bool bulk_range(Exec& x, unsigned lane, Space space, std::uint64_t address, std::int64_t bytes,
                std::int64_t alignment, Purpose purpose, Block** owner);
/// The race and initialised-bytes checks of a range, at issue; of updates by element.
void note_bulk(Exec& x, unsigned lane, Space space, std::uint64_t address, std::int64_t bytes,
               Access access, const Actor& actor, std::int64_t element_bytes = 4);
/// The bytes of a checked range; `owner` null: global memory.
void read_bytes(Run& run, const Block* owner, std::uint64_t address, std::span<std::byte> out);
void write_bytes(Run& run, Block* owner, std::uint64_t address, std::span<const std::byte> data);

}  // namespace tilewright::emu::detail
