// SPDX-License-Identifier: Apache-2.0
// Files of named tensors in the safetensors format.
#pragma once

#include "tilewright/array.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright {

/// What a header says of one tensor.
struct TensorEntry {
  std::string name;
  Type type = Type::none;
  std::vector<std::int64_t> shape;
  std::uint64_t offset = 0;  ///< in the file
  std::uint64_t size_bytes = 0;
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

/// A checked header.
struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  ///< in header order
  Metadata metadata;
};

/// Reads a header from a file's first bytes. Pre: `bytes` holds the whole header, or as much of the
/// file as there is. Throws Error(user) that starts with `path`.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> bytes,
                                           std::uint64_t file_size, const std::string& path);

/// An open file: the header is read at once, each tensor when asked for. (Tensors are read, not
/// mapped: a mapped file that shrinks would end the process.)
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);
  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&& other) noexcept;
  ~SafetensorsFile();

  std::span<const TensorEntry> tensors() const { return header_.tensors; }
  const Metadata& metadata() const { return header_.metadata; }
  const TensorEntry* find(std::string_view name) const;
  /// Throws Error(user) that lists names if there is no such tensor.
  Array read(std::string_view name) const;

 private:
  struct State;
  State* state_;
  SafetensorsHeader header_;
};

std::vector<Array> read_safetensors(const std::string& path);

/// Writes atomically, tensors with wide elements first so that each is aligned to its element.
/// Names must be distinct and not "__metadata__".
void write_safetensors(const std::string& path, std::span<const Array> arrays,
                       const Metadata& metadata = {});

}  // namespace tilewright
