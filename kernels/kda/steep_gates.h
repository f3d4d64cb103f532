// SPDX-License-Identifier: Apache-2.0
// Inputs for tests of gates whose rate e^A_log f32 does not hold.
#pragma once

#include "tilewright/array.h"

#include <array>
#include <cstddef>
#include <vector>

namespace tilewright::kda {

/// The same inputs with A_log up to 300 and no dt_bias, and with an `a` that makes products with
/// the rate ordinary numbers (e^96 times softplus(-96) is 1), zeros, and numbers beyond f32.
inline std::vector<Array> with_steep_gates(std::vector<Array> given) {
  constexpr std::array kRates{96.0, 88.0, 130.0, 300.0};
  constexpr std::array kInputs{0.0, -96.0, -104.0, 20.5,     -88.0, -304.0, 1.0,
                               0.0, -0.5,  -200.0, 0x1p-126, -12.0, -130.0};
  for (Array& array : given) {
    std::vector<double> values(static_cast<std::size_t>(element_count(array.shape)));
    if (array.name != "a" && array.name != "A_log" && array.name != "dt_bias") continue;
    for (std::size_t i = 0; i < values.size() && array.name != "dt_bias"; ++i)
      values[i] = array.name == "a" ? kInputs[i % kInputs.size()] : kRates[i % kRates.size()];
    array = make_array(array.name, array.type, array.shape, values);
  }
  return given;
}

}  // namespace tilewright::kda
