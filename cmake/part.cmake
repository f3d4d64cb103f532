# SPDX-License-Identifier: Apache-2.0
# Builds one part of the tree: a static library from src/NAME and its tests from test/NAME.

# tilewright_part(NAME DEPENDS part... [LIBRARIES target...])
function(tilewright_part name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/vector/") # compiled once per instruction set, see vector.cmake
  list(TRANSFORM ARG_DEPENDS PREPEND tilewright_)
  if(NOT sources) # a part of headers only
    add_library(tilewright_${name} INTERFACE)
    target_include_directories(tilewright_${name} INTERFACE ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(tilewright_${name} INTERFACE ${ARG_DEPENDS})
    return()
  endif()
  add_library(tilewright_${name} STATIC ${sources})
  tilewright_unity(tilewright_${name})
  target_include_directories(tilewright_${name}
    PUBLIC ${PROJECT_SOURCE_DIR}/include PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(tilewright_${name} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_LIBRARIES} tilewright_flags)
  set_property(GLOBAL APPEND PROPERTY TILEWRIGHT_PARTS tilewright_${name})
  set_property(GLOBAL APPEND PROPERTY TILEWRIGHT_OBJECTS $<TARGET_OBJECTS:tilewright_${name}>)

  file(GLOB tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/${name}/*_test.cpp)
  if(TILEWRIGHT_TESTS AND tests)
    tilewright_test(${name}_test SOURCES ${tests} PARTS ${name})
  endif()
endfunction()

# tilewright_test(NAME SOURCES file... PARTS part...): one GoogleTest program, each test case known to CTest.
function(tilewright_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PARTS" ${ARGN})
  list(TRANSFORM ARG_PARTS PREPEND tilewright_)
  add_executable(${name} ${ARG_SOURCES})
  tilewright_unity(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_PARTS} tilewright_test_main tilewright_flags)
  # The tests' own code is run once: -O2 makes its compilation longer than it makes the tests shorter.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
endfunction()

# tilewright_test_main(): the main() of every test program, which knows --update-golden.
function(tilewright_test_main)
  add_library(tilewright_test_main STATIC ${PROJECT_SOURCE_DIR}/test/main.cpp ${PROJECT_SOURCE_DIR}/test/golden.cpp
    ${PROJECT_SOURCE_DIR}/test/machine_code.cpp)
  target_include_directories(tilewright_test_main PUBLIC ${PROJECT_SOURCE_DIR}/test)
  target_compile_definitions(tilewright_test_main PUBLIC TILEWRIGHT_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    PRIVATE TILEWRIGHT_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_link_libraries(tilewright_test_main PUBLIC GTest::gtest PRIVATE tilewright_flags)
endfunction()

# tilewright_program(NAME SOURCES file... [PARTS part...]): a program for examples, benchmarks, fuzz targets; it links every
# part unless some are named.
function(tilewright_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PARTS" ${ARGN})
  if(ARG_PARTS)
    list(TRANSFORM ARG_PARTS PREPEND tilewright_ OUTPUT_VARIABLE parts)
  else()
    get_property(parts GLOBAL PROPERTY TILEWRIGHT_PARTS)
    list(REVERSE parts)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${parts} tilewright_flags)
endfunction()
