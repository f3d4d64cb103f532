// SPDX-License-Identifier: Apache-2.0
// Where the variables of an entry lie in a block's shared memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::emu::detail {

struct Code;
struct FunctionCode;

/// Of the module, or of a function's body.
struct SharedVariable {
  std::string name;
  std::uint32_t function = 0;  ///< kNoFunction: of the module
  std::int64_t bytes = 0, alignment = 1;
  bool dynamic = false;  ///< without a size: behind all others
};

/// As ptxas does, an entry has room for what it and the functions that it calls use, and for
/// nothing else. Unlike there, free bytes lie between variables: no access may touch them.
struct SharedLayout {
  std::vector<std::int64_t> at;           ///< by variable, from kSharedBase; -1: not used
  std::int64_t bytes = 0;                 ///< without the free bytes between variables
  std::int64_t end = 0;                   ///< with them
  std::int64_t dynamic_at = 0;            ///< where dynamic shared memory begins
  std::int64_t dynamic_bytes_before = 0;  ///< the same without the free bytes
  std::vector<std::uint64_t> gaps;        ///< a bit a byte up to dynamic_at: in no variable

  /// Whether any of the bytes is in a gap.
  bool in_gap(std::uint64_t offset, std::uint64_t count) const;
};

void find_shared_variables(Code& code);
/// The variable that a function means by a name, or null.
const SharedVariable* shared_variable(const Code& code, const FunctionCode& function,
                                      std::string_view name);
/// Needs the calls and uses of every decoded function.
void lay_out_shared(Code& code);

}  // namespace tilewright::emu::detail
