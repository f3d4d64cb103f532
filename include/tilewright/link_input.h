// SPDX-License-Identifier: Apache-2.0
// Device code of the user's that is linked to a kernel.
#pragma once

#include "tilewright/error.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tilewright {

/// Relocatable device code that defines functions a kernel declares with extern_function(): a
/// cubin, PTX, fatbin, or host object or library with device code in it (nvcc -rdc=true -c).
class LinkInput {
 public:
  /// `name` is shown in messages. Throws Error(user) for no bytes.
  LinkInput(std::string name, std::vector<std::byte> bytes, SourceLoc at = SourceLoc::here());
  /// Reads a file. Throws Error(user) if it cannot.
  static LinkInput file(const std::string& path, SourceLoc at = SourceLoc::here());

  const std::string& name() const { return name_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  /// Tells it from others: 32 digits of the bytes' hash.
  const std::string& digest() const { return digest_; }
  friend bool operator==(const LinkInput& a, const LinkInput& b) { return a.digest_ == b.digest_; }

 private:
  std::string name_;
  std::vector<std::byte> bytes_;
  std::string digest_;
};

}  // namespace tilewright
