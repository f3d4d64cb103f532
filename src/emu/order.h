// SPDX-License-Identifier: Apache-2.0
// Release and acquire on memory words: edges between threads whose scopes include each other.
#pragma once

#include "emu/access.h"

namespace tilewright::emu::detail {

/// st.release / st.relaxed / st.volatile: what the stored words hand on.
void before_strong_write(Exec& x, const Inst& in, int address_operand);
/// ld.acquire takes what the words hand on; a weaker strong load keeps it for a later fence.
void after_strong_read(Exec& x, const Inst& in, int address_operand);

/// One word: `read` and `write` say what the access does; an update keeps what was handed on.
void release_word(Exec& x, unsigned lane, std::uint64_t key, const OpInfo& info, bool keep);
void acquire_word(Exec& x, unsigned lane, std::uint64_t key, const OpInfo& info);
/// A key for a word: shared memory belongs to a block.
std::uint64_t word_key(const Exec& x, Space space, std::uint64_t address, std::uint32_t bytes);

}  // namespace tilewright::emu::detail
