// SPDX-License-Identifier: Apache-2.0
// Copies of a PTX text that each lack one barrier, fence or wait.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::emu::test {

/// Statements of synchronisation, by their first word.
inline constexpr std::array kSynchronisation = {"bar.sync",
                                                "bar.warp.sync",
                                                "bar.arrive",
                                                "bar.red",
                                                "barrier.sync",
                                                "barrier.arrive",
                                                "barrier.red",
                                                "membar",
                                                "fence",
                                                "cp.async.wait",
                                                "cp.async.bulk.wait",
                                                "mbarrier.test_wait",
                                                "mbarrier.try_wait",
                                                "wgmma.fence",
                                                "wgmma.wait_group",
                                                "barrier.cluster"};

struct Mutant {
  std::string text;
  std::uint32_t line = 0;
  std::string what;  ///< "line 41: bar.sync 0"
  std::string opcode;
};

inline std::vector<Mutant> mutants(const std::string& text) {
  std::vector<Mutant> out;
  for (const char* word : kSynchronisation) {
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      const bool begins = at > 0 && (std::isspace(static_cast<unsigned char>(text[at - 1])) != 0 ||
                                     text[at - 1] == ';' || text[at - 1] == '{');
      const std::size_t end = text.find(';', at);
      if (!begins || end == std::string::npos) continue;
      const auto line = static_cast<std::uint32_t>(
          1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
      const std::size_t guard = text.find_last_of("@;:{}\n", at - 1);  // goes with its statement
      const std::size_t begin = guard != std::string::npos && text[guard] == '@' ? guard : at;
      out.push_back({text.substr(0, begin) + text.substr(end + 1), line,
                     "line " + std::to_string(line) + ": " + text.substr(at, end - at),
                     text.substr(at, std::min(text.find_first_of(" \t\n", at), end) - at)});
    }
  }
  return out;
}

}  // namespace tilewright::emu::test
