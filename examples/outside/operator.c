/* SPDX-License-Identifier: Apache-2.0
 * A user's C program: the versions of header and library agree, and a bundle that is none is refused. */
#define TILEWRIGHT_BUNDLE_IMPLEMENTATION
#include <stdio.h>
#include <tilewright.h>
#include <tilewright_bundle.h>

int main(void) {
  tw_bundle* bundle = NULL;
  if (tw_abi_version() != TW_ABI_VERSION || tw_operator_count() == 0) return 1;
  if (tw_bundle_open_memory("no bundle", 9, &bundle) != TW_BUNDLE_FOREIGN) return 1;
  printf("tilewright %s: %s\n", tw_version(), tw_bundle_message());
  return 0;
}
