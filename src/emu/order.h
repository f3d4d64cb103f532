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
/// The warp may wait for the word: it looks at it after each release, before it is written again.
void watch(Exec& x, std::uint64_t key);
/// True: warps that wait for a word which the instruction writes have not looked at it since its
/// last release. They run now, and the instruction after them, from its start.
bool others_look_first(Exec& x, const Inst& in, int address_operand);
/// A key for a word: shared memory belongs to a block.
std::uint64_t word_key(const Exec& x, Space space, std::uint64_t address, std::uint32_t bytes);

}  // namespace tilewright::emu::detail
