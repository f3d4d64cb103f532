// SPDX-License-Identifier: Apache-2.0
// Turning by frequencies instead of a table.
#include "kernels/qk_norm_rope/rope_turn.h"

#include "tilewright/math.h"

namespace tilewright {

void RopeTurn::widen() {
  for (std::vector<Fragment>* each : {&cosines, &sines}) {
    for (Fragment& fragment : *each)
      fragment = fragment.to(f32);
  }
}

RopeTurn computed_turn(const std::vector<Fragment>& frequencies, const Value& position,
                       const std::optional<Value>& factor) {
  const Value from_zero = max(position, constant(position.type(), 0)).to(f32);
  const auto scaled = [&](const Value& x) { return factor ? x * *factor : x; };
  RopeTurn turn;
  for (const Fragment& frequency : frequencies) {
    const Fragment angle = frequency * from_zero;
    turn.cosines.push_back(map(angle, [&](const Value& x) { return scaled(cos(x)); }));
    turn.sines.push_back(map(angle, [&](const Value& x) { return scaled(sin(x)); }));
  }
  return turn;
}

}  // namespace tilewright
