// SPDX-License-Identifier: Apache-2.0
// The main() of every test program: GoogleTest's, plus the flag --update-golden.
#include "golden.h"

#include <cstring>
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--update-golden") == 0) tilewright::test::set_update_golden();
  }
  return RUN_ALL_TESTS();
}
