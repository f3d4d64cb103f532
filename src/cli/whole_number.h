// SPDX-License-Identifier: Apache-2.0
// A check of options that take a count: CLI11 reads "-1" as 2^64 - 1 and caps what is too large.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>

namespace tilewright::cli {

/// For CLI::Option::check: digits alone, from `least` to `most`.
CLI::Validator whole_number(std::uint64_t least = 0, std::uint64_t most = UINT64_MAX);

}  // namespace tilewright::cli
