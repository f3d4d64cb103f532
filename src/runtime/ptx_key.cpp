// SPDX-License-Identifier: Apache-2.0
// Hashes by xxHash, used header-only.
#include "runtime/ptx_key.h"

#include <algorithm>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"  // xxhash.h is C
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wundef"
#define XXH_INLINE_ALL
#include <xxhash.h>
#pragma GCC diagnostic pop

namespace tilewright::detail {

Hash hash_of(std::string_view bytes) {
  XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

std::uint64_t short_hash_of(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string hex(const Hash& hash) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::uint64_t half : {hash.high, hash.low}) {
    for (int shift = 60; shift >= 0; shift -= 4)
      text += kDigits[half >> shift & 15];
  }
  return text;
}

std::string without_source_lines(std::string_view ptx) {
  std::string kept;
  kept.reserve(ptx.size());
  while (!ptx.empty()) {
    std::size_t end = std::min(ptx.find('\n'), ptx.size() - 1) + 1;
    std::string_view line = ptx.substr(0, end);
    ptx.remove_prefix(end);
    std::string_view text = line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!text.starts_with(".loc") && !text.starts_with(".file")) kept += line;
  }
  return kept;
}

}  // namespace tilewright::detail
