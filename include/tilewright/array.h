// SPDX-License-Identifier: Apache-2.0
// A tensor in host memory, row-major and without gaps: what files hold and references compute.
#pragma once

#include "tilewright/error.h"
#include "tilewright/type.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tilewright {

/// Truth values are stored as `b8` (a byte of 0 or 1), e2m1 as two values a byte, low half first.
struct Array {
  std::string name;
  Type type = Type::none;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  friend bool operator==(const Array&, const Array&) = default;
};

/// Number of elements of a shape. Throws Error(user) for a negative extent or a product over
/// 2^63-1.
std::int64_t element_count(std::span<const std::int64_t> shape, SourceLoc at = SourceLoc::here());
/// Bytes of a row-major tensor. Throws as element_count does.
std::int64_t storage_bytes(Type type, std::span<const std::int64_t> shape,
                           SourceLoc at = SourceLoc::here());

/// An array of zeros.
Array make_array(std::string name, Type type, std::vector<std::int64_t> shape,
                 SourceLoc at = SourceLoc::here());
/// An array of the given values, each rounded to nearest even (floats above the largest become
/// infinity where the type has one, else the largest; integers must fit).
Array make_array(std::string name, Type type, std::vector<std::int64_t> shape,
                 std::span<const double> values, SourceLoc at = SourceLoc::here());

/// The values of all elements in row-major order. 64-bit integers beyond 2^53 round to nearest.
std::vector<double> to_doubles(const Array& array);
/// One element's value from its bits (low bits of `bits`), and the bits of the nearest value.
double decode(Type type, std::uint64_t bits);
std::uint64_t encode(Type type, double value);

/// "x: bf16[4,128]".
std::string to_string(const Array& array);
/// "[4,128]".
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace tilewright
