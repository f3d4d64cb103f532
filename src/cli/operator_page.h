// SPDX-License-Identifier: Apache-2.0
// The page of all operators, from their schemas: docs/operators.md.
#pragma once

#include "tilewright/operator.h"

#include <span>
#include <string>

namespace tilewright::cli {

/// "x, w? -> y": `?` marks what may be absent, `*` what is read and written.
std::string signature(const Schema& schema);

/// Markdown. Figures are markers that scripts/docs.py fills from bench/results/operators.json.
std::string operator_page(std::span<const Operator* const> operators);

}  // namespace tilewright::cli
