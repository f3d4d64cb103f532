// SPDX-License-Identifier: Apache-2.0
// Checking options that take a count.
#include "cli/whole_number.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <charconv>
#include <string>

namespace tilewright::cli {

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  const auto problem = [least, most](const std::string& text) -> std::string {
    std::uint64_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = code == std::errc() && end == text.data() + text.size();
    if (whole && number >= least && number <= most) return {};
    return "'" + text + "' is no whole number from " + std::to_string(least) + " to " +
           std::to_string(most);
  };
  return {problem, "", "whole_number"};
}

}  // namespace tilewright::cli
