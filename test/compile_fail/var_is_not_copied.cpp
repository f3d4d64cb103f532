// SPDX-License-Identifier: Apache-2.0
// A copy of a Var would be a second name of one register or a new one: say Value or Var(Value).
// expect: deleted
#include "tilewright/value.h"

void body(const tilewright::Var& x) {
  tilewright::Value snapshot = x;
  tilewright::Var another(snapshot);
#ifdef TW_MISTAKE
  tilewright::Var copy = x;
#endif
}
