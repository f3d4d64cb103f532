// SPDX-License-Identifier: Apache-2.0
// Runs the ptxas program on a text, for the tests that compare with it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tilewright::ptx::test {

/// Is there a ptxas? Tests that need one are skipped otherwise.
bool has_ptxas();

struct Assembled {
  bool ok = false;
  std::string cubin;
  std::map<std::uint32_t, std::string> errors;  ///< the first of each line
  std::string output;
};
Assembled assemble(const std::string& text, const std::string& target);

}  // namespace tilewright::ptx::test
