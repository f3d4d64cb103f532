// SPDX-License-Identifier: Apache-2.0
// An operator made for tests of the program: x = -x, in place.
#pragma once

#include "tilewright/operator.h"

namespace tilewright::test {

const Operator& negate_operator();

}  // namespace tilewright::test
