// SPDX-License-Identifier: Apache-2.0
// A Value is what an expression computed; what changes is a Var.
// expect: deleted
#include "tilewright/value.h"

void body(const tilewright::Value& x) {
  tilewright::Var changing(x);
  changing = x + 1;
#ifdef TW_MISTAKE
  tilewright::Value fixed = x;
  fixed = x + 1;
#endif
}
