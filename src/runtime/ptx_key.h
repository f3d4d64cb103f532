// SPDX-License-Identifier: Apache-2.0
// Hashes: of PTX text without its source lines, and of keys.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright::detail {

/// XXH3, 128 bits.
struct Hash {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const Hash&, const Hash&) = default;
};
Hash hash_of(std::string_view bytes);
std::uint64_t short_hash_of(std::string_view bytes);  ///< 64 bits, for tables in memory
std::string hex(const Hash& hash);                    ///< 32 digits

/// The text without lines that start with .file or .loc: what decides the machine code.
std::string without_source_lines(std::string_view ptx);

}  // namespace tilewright::detail
