// SPDX-License-Identifier: Apache-2.0
// What tests hang on a device to see its launches, or to run other code in their place.
#pragma once

#include "tilewright/emulator.h"

#include <functional>

namespace tilewright::emu::detail {

struct LaunchHooks {
  std::function<void(Launch&)> before;  ///< may change the launch
  std::function<void(const Launch&, const LaunchReport&)> after;
};

}  // namespace tilewright::emu::detail
