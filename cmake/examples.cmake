# SPDX-License-Identifier: Apache-2.0
# Builds each examples/NN_name.cpp as a program and runs it in the emulator as the test example.NN_name.
if(NOT TILEWRIGHT_EXAMPLES)
  return()
endif()

file(GLOB examples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/[0-9][0-9]_*.cpp)
foreach(example ${examples})
  cmake_path(GET example STEM stem)
  tilewright_program(example_${stem} SOURCES ${example})
  if(TILEWRIGHT_TESTS)
    add_test(NAME example.${stem} COMMAND example_${stem} emu:sm_90a)
    set_tests_properties(example.${stem} PROPERTIES TIMEOUT 120 LABELS example)
  endif()
endforeach()
