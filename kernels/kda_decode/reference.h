// SPDX-License-Identifier: Apache-2.0
// The float64 reference of the delta rule token by token, from its formulas.
#pragma once

#include "kernels/kda_decode/kda_decode.h"

#include <vector>

namespace tilewright {

/// What operators call these tensors.
struct DeltaRuleNames {
  const char* a = "a";
  const char* b = "b";
  const char* state = "state";
};
/// Results in row-major order; what must stay untouched is NaN in `out` and `snapshots`.
struct DeltaRuleResults {
  std::vector<double> out, state, snapshots;
};
DeltaRuleResults delta_rule_reference(const KdaDecodeOptions& options, const HostTensors& tensors,
                                      const DeltaRuleNames& names);

/// Sets tensor `name` in f64 if `arguments` has it.
void set_reference(const Arguments& arguments, const char* name, const std::vector<double>& numbers,
                   HostTensors& tensors);

}  // namespace tilewright
