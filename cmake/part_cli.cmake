# SPDX-License-Identifier: Apache-2.0
# The program `tilewright`, and its commands as a library for tests.
if(NOT TILEWRIGHT_CLI)
  return()
endif()
find_path(CLI11_INCLUDE_DIR CLI/App.hpp)
if(NOT CLI11_INCLUDE_DIR)
  message(FATAL_ERROR "CLI11 not found: install libcli11-dev, or set TILEWRIGHT_CLI to OFF")
endif()

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/*.cpp)
list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
add_library(tilewright_cli STATIC ${sources})
tilewright_unity(tilewright_cli)
target_include_directories(tilewright_cli PUBLIC ${PROJECT_SOURCE_DIR}/src)
target_include_directories(tilewright_cli SYSTEM PUBLIC ${CLI11_INCLUDE_DIR})
target_compile_definitions(tilewright_cli PRIVATE TILEWRIGHT_VERSION="${PROJECT_VERSION}"
  TILEWRIGHT_COMPILER="${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
target_link_libraries(tilewright_cli PUBLIC tilewright_library PRIVATE tilewright_flags)

add_executable(tilewright ${PROJECT_SOURCE_DIR}/src/cli/main.cpp)
target_link_libraries(tilewright PRIVATE tilewright_cli tilewright_flags)
target_link_options(tilewright PRIVATE -Wl,--gc-sections)
tilewright_installed(tilewright)

# The tests drive two programs: `tilewright`, and one whose operators are made for the tests.
if(TILEWRIGHT_TESTS)
  file(GLOB tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/cli/*_test.cpp)
  add_executable(cli_test_program ${PROJECT_SOURCE_DIR}/test/cli/program/main.cpp
    ${PROJECT_SOURCE_DIR}/test/cli/program/keep.cpp ${PROJECT_SOURCE_DIR}/test/cli/program/negate.cpp ${PROJECT_SOURCE_DIR}/test/cli/program/scale.cpp)
  set_target_properties(cli_test_program PROPERTIES UNITY_BUILD OFF) # each file is an operator with names of its own
  target_include_directories(cli_test_program PRIVATE ${PROJECT_SOURCE_DIR}/test)
  target_link_libraries(cli_test_program PRIVATE tilewright_cli tilewright_flags)
  tilewright_test(cli_test SOURCES ${tests} PARTS cli)
  target_compile_definitions(cli_test PRIVATE TILEWRIGHT_PROGRAM="$<TARGET_FILE:tilewright>"
    TILEWRIGHT_TEST_PROGRAM="$<TARGET_FILE:cli_test_program>")
  add_dependencies(cli_test tilewright cli_test_program)
  if(TARGET tilewright_fake_cuda)
    target_compile_definitions(cli_test PRIVATE
      TILEWRIGHT_FAKE_CUDA="$<TARGET_FILE:tilewright_fake_cuda>")
    add_dependencies(cli_test tilewright_fake_cuda)
  endif()
endif()
