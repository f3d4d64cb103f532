// SPDX-License-Identifier: Apache-2.0
// An assertion's condition is tested as a truth value: a type that has none does not compile.
// expect: static_cast<bool>
#include "tilewright/error.h"

struct Opaque {};

void check(int size) {
  TW_ASSERT(size >= 0, "sizes come from shapes, which are checked");
#ifdef TW_MISTAKE
  TW_ASSERT(Opaque{}, "not a truth value");
#endif
}
