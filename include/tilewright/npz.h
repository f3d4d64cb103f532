// SPDX-License-Identifier: Apache-2.0
// NumPy's archives of named arrays (.npz): zip files of .npy files.
#pragma once

#include "tilewright/array.h"

#include <span>
#include <string>
#include <vector>

namespace tilewright {

enum class Compression : std::uint8_t { none, deflate };

/// All arrays in archive order; `raw` as for read_npy. Throws Error(user) that starts with the
/// path.
std::vector<Array> read_npz(const std::string& path, Type raw = Type::none);
/// One array by name, without reading the others.
Array read_npz(const std::string& path, const std::string& name, Type raw = Type::none);

/// Writes atomically; the same arrays give the same bytes. Names must be distinct.
void write_npz(const std::string& path, std::span<const Array> arrays,
               Compression compression = Compression::none);

}  // namespace tilewright
