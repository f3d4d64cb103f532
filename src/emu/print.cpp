// SPDX-License-Identifier: Apache-2.0
// printf's formatting, with the host's snprintf called only on conversions that were checked.
#include "emu/builtins.h"

#include <array>
#include <bit>
#include <cstdio>
#include <string>
#include <string_view>

namespace tilewright::emu::detail {

namespace {

struct Conversion {
  std::string flags;  ///< "%-08.3" without length and letter
  int width_args = 0;
  std::string length;
  char letter = 0;
};

/// Reads one conversion behind '%'; false if it is malformed or too wide.
bool read_conversion(std::string_view text, std::size_t& at, Conversion& c, PrintSource& source) {
  c.flags = "%";
  int digits = 0;
  while (at < text.size() && std::string_view("-+ #0123456789.*").find(text[at]) != text.npos) {
    if (text[at] == '*') {
      const auto n = static_cast<std::int32_t>(source.argument(4));
      if (n < -1000 || n > 1000) return false;
      c.flags += std::to_string(n);
    } else {
      digits = text[at] >= '0' && text[at] <= '9' ? digits + 1 : 0;
      if (digits > 3) return false;
      c.flags += text[at];
    }
    ++at;
  }
  while (at < text.size() && std::string_view("hlLzjt").find(text[at]) != text.npos) {
    c.length += text[at++];
  }
  if (at >= text.size()) return false;
  c.letter = text[at++];
  return std::string_view("diouxXcsfFeEgGaAp%").find(c.letter) != text.npos;
}

template <class T>
std::string printed(const std::string& format, T value) {
  std::array<char, 2048> buffer;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int n = std::snprintf(buffer.data(), buffer.size(), format.c_str(), value);
#pragma GCC diagnostic pop
  return n > 0 ? std::string(buffer.data(),
                             std::min<std::size_t>(static_cast<std::size_t>(n), buffer.size() - 1))
               : std::string();
}

std::string convert(const Conversion& c, PrintSource& source) {
  const bool wide = c.length.find("ll") != std::string::npos || c.length == "l" ||
                    c.length == "z" || c.length == "j" || c.length == "t";
  switch (c.letter) {
    case '%':
      return "%";
    case 'd':
    case 'i': {
      const std::uint64_t v = source.argument(wide ? 8 : 4);
      const auto value =
          wide ? static_cast<long long>(v) : static_cast<long long>(static_cast<std::int32_t>(v));
      return printed(c.flags + "ll" + c.letter, value);
    }
    case 'o':
    case 'u':
    case 'x':
    case 'X':
      return printed(c.flags + "ll" + c.letter,
                     static_cast<unsigned long long>(source.argument(wide ? 8 : 4)));
    case 'c':
      return printed(c.flags + "c", static_cast<int>(source.argument(4)));
    case 's':
      return printed(c.flags + "s", source.text(source.argument(8)).c_str());
    case 'p':
      return hex(source.argument(8));
    default:
      return printed(c.flags + c.letter, std::bit_cast<double>(source.argument(8)));
  }
}

}  // namespace

std::string format_print(const std::string& format, PrintSource& source) {
  std::string out;
  std::size_t at = 0;
  while (at < format.size()) {
    if (format[at] != '%') {
      out += format[at++];
      continue;
    }
    std::size_t behind = at + 1;
    Conversion c;
    if (read_conversion(format, behind, c, source)) {
      out += convert(c, source);
    } else {
      out += format.substr(at, behind - at);
    }
    at = behind;
  }
  return out;
}

}  // namespace tilewright::emu::detail
