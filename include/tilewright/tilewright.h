// SPDX-License-Identifier: Apache-2.0
// The whole library: includes every public header.
#pragma once

#include "tilewright/array.h"
#include "tilewright/error.h"
#include "tilewright/form.h"
#include "tilewright/module.h"
#include "tilewright/operator.h"
#include "tilewright/operators.h"
#include "tilewright/target.h"
#include "tilewright/type.h"
#include "tilewright/view.h"
