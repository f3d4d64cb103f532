// SPDX-License-Identifier: Apache-2.0
// From a model's config.json to the operators and problems that serving it needs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tilewright::cli {

/// An operator and a problem in parse_problem's notation.
struct Work {
  std::string op;
  std::string problem;
};

/// The operators around the matrix products of a decoder whose config.json follows Hugging Face's
/// names, for each number of tokens, on one of `ranks` GPUs that share its heads and widths. Throws
/// Error(user) that names the file and the field that is missing or wrong.
std::vector<Work> work_of_model(const std::string& path, std::span<const std::int64_t> tokens,
                                std::int64_t ranks);

}  // namespace tilewright::cli
