// SPDX-License-Identifier: Apache-2.0
// C++'s own `if` cannot ask a traced value, which is known on the device only.
// expect: convert
#include "tilewright/control.h"

void body(const tilewright::Value& x) {
  tilewright::if_(x > 0, [] {});
#ifdef TW_MISTAKE
  if (x > 0) return;
#endif
}
