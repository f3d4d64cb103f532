// SPDX-License-Identifier: Apache-2.0
// A test operator with configurations: it leaves x as it is, which a driver that runs nothing does
// too.
#pragma once

#include "tilewright/operator.h"

namespace tilewright::test {

const Operator& keep_operator();

}  // namespace tilewright::test
