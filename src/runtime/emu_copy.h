// SPDX-License-Identifier: Apache-2.0
// Copies and fills on streams as the race check sees them: small kernels that touch the bytes.
#pragma once

#include "tilewright/emulator.h"

#include <cstdint>
#include <vector>

namespace tilewright::detail {

/// The bytes that a copy reads and those that it writes; address 0: none on this device.
struct CopiedBytes {
  std::uint64_t from = 0, to = 0;
  std::int64_t bytes = 0;
};

/// Runs accesses in place of copies. What is written is not what the copy writes: it comes after.
class CopyChecker {
 public:
  explicit CopyChecker(emu::Machine& machine) : machine_(machine) {}
  /// Larger ones are not looked at: they would cost as much memory as they touch.
  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 24;
  /// The races with launches that `order` does not know, and with later ones that do not know it.
  std::vector<emu::Diagnostic> check(const CopiedBytes& copied, const emu::LaunchOrder& order,
                                     const emu::Options& options);

 private:
  emu::Machine& machine_;
  emu::Program program_;
};

}  // namespace tilewright::detail
