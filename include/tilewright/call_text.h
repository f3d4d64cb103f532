// SPDX-License-Identifier: Apache-2.0
// A text given to a variadic call of the language, with the line of that call.
#pragma once

#include "tilewright/error.h"

#include <concepts>
#include <string_view>

namespace tilewright {

/// What a caller writes as a plain string; it outlives the call.
class CallText {
 public:
  template <std::convertible_to<std::string_view> Text>
  // NOLINTNEXTLINE(google-explicit-constructor): a call is written with a plain string
  CallText(const Text& text, SourceLoc at = SourceLoc::here()) : text_(text), at_(at) {}
  std::string_view text() const { return text_; }
  SourceLoc at() const { return at_; }

 private:
  std::string_view text_;
  SourceLoc at_;
};

}  // namespace tilewright
