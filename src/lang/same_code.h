// SPDX-License-Identifier: Apache-2.0
// Whether two functions or variables of one module mean the same.
#pragma once

#include "tilewright/module.h"

namespace tilewright::lang {

/// The same parameters, registers and statements, wherever they come from.
bool same_code(const ptx::Function& a, const ptx::Function& b);
bool same_variable(const ptx::Variable& a, const ptx::Variable& b);

}  // namespace tilewright::lang
