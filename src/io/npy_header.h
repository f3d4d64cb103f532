// SPDX-License-Identifier: Apache-2.0
// The header of a .npy file.
#pragma once

#include "base/file.h"
#include "tilewright/type.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::io {

struct NpyHeader {
  Type type = Type::none;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::uint64_t data_offset = 0;
  std::uint64_t data_bytes = 0;  ///< checked to end where the file ends
};

NpyHeader read_npy_header(const Source& source, Type raw);
/// Magic, version 1, dictionary and padding to 64 bytes. Throws Error(user) for types without a
/// NumPy counterpart.
std::string npy_header_text(const std::string& path, Type type,
                            const std::vector<std::int64_t>& shape);

}  // namespace tilewright::io
