// SPDX-License-Identifier: Apache-2.0
// What the opaque handle of a device holds.
#pragma once

#include "tilewright.h"
#include "tilewright/device.h"

struct tw_device {
  tilewright::Device device;
};
