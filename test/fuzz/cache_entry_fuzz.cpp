// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes as a cache entry, and as the body of one whose checksum fits.
#include "runtime/cache_entry.h"
#include "runtime/ptx_key.h"

#include <cstdint>
#include <string>

namespace {

void put(std::string& to, std::uint64_t value) {
  for (int i = 0; i < 8; ++i)
    to += static_cast<char>(value >> (8 * i) & 0xff);
}

std::string with_head(const std::string& body) {
  tilewright::detail::Hash hash = tilewright::detail::hash_of(body);
  std::string bytes = "TWCACHE\n";
  put(bytes, 1);
  put(bytes, body.size());
  put(bytes, hash.low);
  put(bytes, hash.high);
  return bytes + body;
}

void decode(const std::string& bytes) {
  auto [file, problem] = tilewright::detail::decode_entry(bytes);
  if (file.has_value() == !problem.empty()) __builtin_trap();
  if (file && file->encode() != bytes) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  decode(bytes);
  decode(with_head(bytes));
  return 0;
}
