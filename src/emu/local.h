// SPDX-License-Identifier: Apache-2.0
// Local memory and kernel parameters.
#pragma once

#include "emu/access.h"

namespace tilewright::emu::detail {

void load_local(Exec& x, const Inst& in, const Addresses& a, int data_operand);
void store_local(Exec& x, const Inst& in, const Addresses& a, int data_operand);
void load_param(Exec& x, const Inst& in, const Addresses& a, int data_operand);

/// Bytes of one lane's local memory at a window address; false (and a report) if out of bounds.
/// `defined`: whether every byte was written.
bool read_local(Exec& x, unsigned lane, std::uint64_t address, std::int64_t bytes, std::byte* out,
                bool& defined);
bool write_local(Exec& x, unsigned lane, std::uint64_t address, std::int64_t bytes,
                 const std::byte* from, bool defined);

/// Copies bytes and what is defined of them, within one lane's local memory.
void copy_local(Exec& x, unsigned lane, std::uint64_t from, std::uint64_t to, std::int64_t bytes);

/// Sign-extends signed integer types; others are zero-extended already.
std::uint64_t extended(std::uint64_t value, std::int64_t bytes, Type type);

}  // namespace tilewright::emu::detail
