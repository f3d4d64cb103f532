// SPDX-License-Identifier: Apache-2.0
// NumPy's file format for one array (.npy).
#pragma once

#include "tilewright/array.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tilewright {

/// Reads versions 1 to 3, little-endian; Fortran order is turned into row-major. NumPy stores types
/// of the ml_dtypes package as raw bytes ("V2"): `raw` says which type they are. The array is named
/// after the file, without folder and extension. Throws Error(user) that starts with the path.
Array read_npy(const std::string& path, Type raw = Type::none);

/// The same from memory; `path` is what errors say.
Array parse_npy(std::span<const std::byte> bytes, const std::string& path, Type raw = Type::none);

/// Writes version 1, atomically. bf16 and fp8 get the names that ml_dtypes gives them, so that
/// np.load knows them once ml_dtypes is imported.
void write_npy(const std::string& path, const Array& array);
std::vector<std::byte> npy_bytes(const Array& array);

}  // namespace tilewright
