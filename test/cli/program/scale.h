// SPDX-License-Identifier: Apache-2.0
// An operator made for tests of the program: y = factor * x, with defects on request.
#pragma once

#include "tilewright/operator.h"

namespace tilewright::test {

const Operator& scale_operator();

}  // namespace tilewright::test
