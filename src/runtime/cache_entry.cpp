// SPDX-License-Identifier: Apache-2.0
// Writes and checks cache entry files. Every length is held against the file before it is used.
#include "runtime/cache_entry.h"

#include "runtime/ptx_key.h"

#include <cstdint>
#include <cstring>

namespace tilewright::detail {
namespace {

// magic, format, body bytes, hash of the body; then the body: a count of fields; for each the
// lengths of its name and value, and both; then the payload. Integers are little-endian.
constexpr std::string_view kMagic = "TWCACHE\n";
constexpr std::uint64_t kFormat = 1;
constexpr std::size_t kHeadBytes = 8 + 4 * 8;
constexpr std::uint64_t kMaxFields = 64;

void put(std::string& to, std::uint64_t value) {
  for (int i = 0; i < 8; ++i)
    to += static_cast<char>(value >> (8 * i) & 0xff);
}

std::uint64_t get_at(std::string_view bytes, std::size_t offset) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[offset + i])} << (8 * i);
  }
  return value;
}

}  // namespace

void EntryFile::set(std::string name, std::string value) {
  fields_.emplace_back(std::move(name), std::move(value));
}

const std::string& EntryFile::get(std::string_view name) const {
  static const std::string none;
  for (const auto& [key, value] : fields_) {
    if (key == name) return value;
  }
  return none;
}

std::string EntryFile::encode() const {
  std::string body;
  put(body, fields_.size());
  for (const auto& [name, value] : fields_) {
    put(body, name.size());
    put(body, value.size());
    body += name;
    body += value;
  }
  body += payload;
  Hash hash = hash_of(body);
  std::string bytes(kMagic);
  for (std::uint64_t number : {kFormat, std::uint64_t{body.size()}, hash.low, hash.high}) {
    put(bytes, number);
  }
  return bytes + body;
}

/// Takes the body apart; `left` is what has not been read yet.
struct EntryReader {
  std::string_view left;

  bool number(std::uint64_t& value) {
    if (left.size() < 8) return false;
    value = get_at(left, 0);
    left.remove_prefix(8);
    return true;
  }
  bool text(std::uint64_t bytes, std::string& value) {
    if (bytes > left.size()) return false;
    value = left.substr(0, bytes);
    left.remove_prefix(bytes);
    return true;
  }
  bool fields(EntryFile& file) {
    std::uint64_t count = 0;
    if (!number(count) || count > kMaxFields) return false;
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t name_bytes = 0;
      std::uint64_t value_bytes = 0;
      std::string name;
      std::string value;
      if (!number(name_bytes) || !number(value_bytes) || !text(name_bytes, name) ||
          !text(value_bytes, value)) {
        return false;
      }
      file.set(std::move(name), std::move(value));
    }
    return true;
  }
};

DecodedEntry decode_entry(std::string_view bytes) {
  auto refuse = [](std::string problem) {
    return DecodedEntry{.file = std::nullopt, .problem = std::move(problem)};
  };
  if (!bytes.starts_with(kMagic)) return refuse("is not a cache entry");
  if (bytes.size() < kHeadBytes) return refuse("is cut short");
  std::uint64_t format = get_at(bytes, 8);
  if (format != kFormat) {
    return refuse("has format " + std::to_string(format) + ", this library reads " +
                  std::to_string(kFormat));
  }
  std::string_view body = bytes.substr(kHeadBytes);
  std::uint64_t body_bytes = get_at(bytes, 16);
  if (body_bytes > body.size()) return refuse("is cut short");
  if (body_bytes < body.size()) return refuse("has bytes after its end");
  if (hash_of(body) != Hash{get_at(bytes, 24), get_at(bytes, 32)}) {
    return refuse("is damaged: its checksum does not fit");
  }
  EntryFile file;
  EntryReader reader{body};
  if (!reader.fields(file)) return refuse("is malformed");
  file.payload = reader.left;
  return {.file = std::move(file), .problem = {}};
}

}  // namespace tilewright::detail
