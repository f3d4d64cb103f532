// SPDX-License-Identifier: Apache-2.0
// The main() of every test program: adds --update-golden and a cache of the tests' own.
#include "golden.h"

#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--update-golden") == 0) tilewright::test::set_update_golden();
  }
  // Every hit is traced again and compared; the user's cache is left alone. What is set stays.
  setenv("TILEWRIGHT_VERIFY_CACHE", "1", 0);
  setenv("TILEWRIGHT_CACHE_DIR", TILEWRIGHT_BINARY_DIR "/test_cache", 0);
  return RUN_ALL_TESTS();
}
