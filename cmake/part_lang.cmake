# SPDX-License-Identifier: Apache-2.0
# The kernel language: traced values, control flow, tensors, copies.
tilewright_part(lang DEPENDS layout ptx)

# Traced kernels that run on a device; a program of its own, for the part runtime comes later.
if(TILEWRIGHT_TESTS)
  file(GLOB run_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/lang/run/*.cpp)
  tilewright_test(lang_run_test SOURCES ${run_tests} PARTS runtime)
endif()
