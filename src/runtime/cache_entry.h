// SPDX-License-Identifier: Apache-2.0
// The file format of cache entries: named fields and a payload under one checksum.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright::detail {

/// Names are without '=' and line ends; values are any bytes. What each kind of entry records is
/// in disk_cache.cpp.
class EntryFile {
 public:
  std::string payload;

  void set(std::string name, std::string value);
  /// The field's value, or empty.
  const std::string& get(std::string_view name) const;

  std::string encode() const;

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
  friend struct EntryReader;
};

/// Either a file or the reason why the bytes are none: cut short, damaged, foreign, newer.
struct DecodedEntry {
  std::optional<EntryFile> file;
  std::string problem;
};
DecodedEntry decode_entry(std::string_view bytes);

}  // namespace tilewright::detail
