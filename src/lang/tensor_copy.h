// SPDX-License-Identifier: Apache-2.0
// Tensor copies with any number of coordinates, behind tma.h and matrix_tile.h.
#pragma once

#include "lang/tracer.h"
#include "tilewright/tma.h"

#include <span>
#include <string>
#include <vector>

namespace tilewright::lang {

using Coordinates = std::span<const Arg>;

/// Which call of the user's begins a copy.
struct CopyCall {
  const char* what;
  SourceLoc at;
  BulkOptions options{};
};
/// Appends the policy, if there is one, to the operands of a copy and its name.
std::string with_policy(std::string op, const CopyCall& call, std::vector<ptx::Operand>& operands);

void tensor_load(const CopyCall& call, const Element& destination, const TensorMapParam& map,
                 Coordinates coordinates, const Mbarrier& done);
void tensor_load_multicast(const char* what, const Element& destination, const TensorMapParam& map,
                           Coordinates coordinates, const Mbarrier& done, const Arg& blocks);
void tensor_store(const CopyCall& call, const TensorMapParam& map, Coordinates coordinates,
                  const Element& source);

}  // namespace tilewright::lang
