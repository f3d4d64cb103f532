// SPDX-License-Identifier: Apache-2.0
// PTX written by hand inside a kernel, through the same checks as everything else.
#pragma once

#include "tilewright/value.h"

#include <initializer_list>
#include <string_view>
#include <vector>

namespace tilewright {

/// Records the instructions of `text`. `$0`, `$1`, ... are the results of the given types, then the
/// arguments; registers and labels that the text declares are its own. Never removed or shared.
/// Throws Error(user) with the PTX line for an instruction that is unknown, malformed, or not on
/// the target:
///   Value lanes = inline_ptx("activemask.b32 $0;", {u32}, {})[0];
std::vector<Value> inline_ptx(std::string_view text, std::initializer_list<Type> results,
                              std::initializer_list<Arg> arguments,
                              SourceLoc at = SourceLoc::here());

}  // namespace tilewright
