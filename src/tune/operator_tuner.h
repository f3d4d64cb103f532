// SPDX-License-Identifier: Apache-2.0
// Searches the spaces that an operator's plan looks up, one after the other.
#pragma once

#include "tilewright/operator.h"
#include "tilewright/tune_record.h"
#include "tilewright/tune_search.h"
#include "tune/session.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tilewright::tune {

/// What to tune: problems whose keys are equal in a space get one configuration, with the least
/// geometric mean of their times.
struct TuneRequest {
  const Operator* op = nullptr;
  std::vector<std::string> problems = {};
  std::vector<std::string> wanted = {};  ///< optional outputs that are computed
  std::uint64_t seed = 0;                ///< of the inputs that results are checked on
  SearchOptions search = {};             ///< budget_s is for all searches together
  std::function<void(const Space&, const Key&)> begin = {};  ///< called before a search
  std::function<void(const Progress&)> progress = {};        ///< called by several threads in turn
};

/// One search.
struct Tuned {
  const Space* space = nullptr;
  Key key{};
  std::vector<std::string> problems;
  SearchResult result;
};

/// Throws Error(unsupported) on an emulated device, Error(user) where the operator looks nothing
/// up.
std::vector<Tuned> tune_operator(const Device& device, const TuneRequest& request);

/// The candidates of each space with nothing but their assembly; no device is needed.
std::vector<Tuned> list_candidates(ptx::Target target, const TuneRequest& request);

/// A problem of an operator, with the optional outputs that are computed.
struct CheckedProblem {
  const Operator* op = nullptr;
  std::string text = {};
  std::vector<std::string> wanted = {};
};

/// Inputs that what is pinned on this thread can be checked on: of the problem, with the space's
/// reducible sizes cut down, except those without which the pinned kernels could not be made.
Inputs check_inputs(const CheckedProblem& problem, const Space& space, ptx::Target target,
                    std::uint64_t seed);

}  // namespace tilewright::tune
