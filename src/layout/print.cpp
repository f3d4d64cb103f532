// SPDX-License-Identifier: Apache-2.0
// Prints CuTe's notation.
#include "tilewright/swizzle.h"

namespace tilewright {

std::string to_string(const IntTuple& t) {
  if (t.is_underscore()) return "_";
  if (!t.is_tuple()) {
    std::string text = to_string(t.value());
    for (int i = t.basis().depth; i > 0; --i) {  // innermost mode first
      text += '@' + std::to_string(t.basis().at[static_cast<std::size_t>(i - 1)]);
    }
    return text;
  }
  std::string text = "(";
  for (const IntTuple& e : t.elems()) {
    if (text.size() > 1) text += ',';
    text += to_string(e);
  }
  return text + ')';
}

std::string to_string(const Layout& layout) {
  return to_string(layout.shape()) + ':' + to_string(layout.stride());
}

std::string to_string(const Tiler& tiler) {
  switch (tiler.kind()) {
    case Tiler::Kind::underscore:
      return "_";
    case Tiler::Kind::layout:
      return to_string(tiler.layout());
    case Tiler::Kind::by_mode:
      break;
  }
  std::string text = "<";
  for (const Tiler& mode : tiler.modes()) {
    if (text.size() > 1) text += ',';
    text += to_string(mode);
  }
  return text + '>';
}

std::string to_string(const Swizzle& swizzle) {
  return "Sw<" + std::to_string(swizzle.bits()) + ',' + std::to_string(swizzle.base()) + ',' +
         std::to_string(swizzle.shift()) + '>';
}

std::string to_string(const ComposedLayout& layout) {
  if (layout.is_plain()) return to_string(layout.layout);
  return to_string(layout.swizzle) + " o " + to_string(layout.offset) + " o " +
         to_string(layout.layout);
}

}  // namespace tilewright
