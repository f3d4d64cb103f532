// SPDX-License-Identifier: Apache-2.0
// The whole library: includes every public header.
#pragma once

#include "tilewright/array.h"
#include "tilewright/assembler.h"
#include "tilewright/buffer.h"
#include "tilewright/cache.h"
#include "tilewright/device.h"
#include "tilewright/diagnostic.h"
#include "tilewright/emulator.h"
#include "tilewright/error.h"
#include "tilewright/form.h"
#include "tilewright/graph.h"
#include "tilewright/kernel.h"
#include "tilewright/launch.h"
#include "tilewright/module.h"
#include "tilewright/operator.h"
#include "tilewright/operators.h"
#include "tilewright/stream.h"
#include "tilewright/target.h"
#include "tilewright/type.h"
#include "tilewright/view.h"
