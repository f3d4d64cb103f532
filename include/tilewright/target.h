// SPDX-License-Identifier: Apache-2.0
// PTX ISA versions and target architectures, and what a requirement on them means.
#pragma once

#include "tilewright/error.h"

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright::ptx {

/// A PTX ISA version such as 8.6.
struct Version {
  int major = 0;
  int minor = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};
std::string to_string(Version version);

/// A target architecture: `sm_90a` is {90, 'a'}; plain targets have suffix '\0'.
struct Target {
  int sm = 0;
  char suffix = '\0';  ///< '\0', 'a' (one architecture only) or 'f' (its family)
  friend auto operator<=>(const Target&, const Target&) = default;
};
std::string to_string(Target target);
/// Reads "sm_90a". Throws Error(user) that lists the known targets.
Target parse_target(std::string_view text, SourceLoc at = SourceLoc::here());

/// Is `target` in the list? Entries: "sm_80+" (that or newer), "90a" (exactly that), "100f" (an `f`
/// or `a` target of that family, from that member on).
bool satisfies(Target target, std::string_view targets);
/// The lowest ISA version that knows the target's name.
Version required_version(Target target);

}  // namespace tilewright::ptx
