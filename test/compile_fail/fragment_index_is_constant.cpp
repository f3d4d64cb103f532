// SPDX-License-Identifier: Apache-2.0
// Registers have no index on the device: a fragment's elements are named by C++ numbers.
// expect: operator[]
#include "tilewright/fragment.h"

void body(const tilewright::Fragment& f, const tilewright::Value& i) {
  f[0] = i;
#ifdef TW_MISTAKE
  f[i] = 0;
#endif
}
