# SPDX-License-Identifier: Apache-2.0
# Builds the operators: a library of all folders kernels/*, their registry and their tests.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/*/*.cpp)
set(tests ${sources})
list(FILTER tests INCLUDE REGEX "[/_]test\\.cpp$")
list(FILTER sources EXCLUDE REGEX "([/_]test|/bench)\\.cpp$")

# A header of a folder declares the operators that the folder has: `const Operator& NAME_operator();`.
file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/*/*.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers})
set(names "")
foreach(header ${headers})
  file(STRINGS ${header} declarations REGEX "^const Operator& [a-z0-9_]+_operator\\(\\);$")
  foreach(declaration ${declarations})
    string(REGEX REPLACE "^const Operator& ([a-z0-9_]+)_operator.*" "\\1" name ${declaration})
    list(APPEND names ${name})
  endforeach()
endforeach()
list(SORT names)
set(TILEWRIGHT_OPERATORS ${names})
set(REGISTRY_DECLARATIONS "")
set(REGISTRY_ENTRIES "")
foreach(name ${names})
  string(APPEND REGISTRY_DECLARATIONS "const Operator& ${name}_operator();\n")
  string(APPEND REGISTRY_ENTRIES "&${name}_operator(), ")
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/registry.cpp.in ${PROJECT_BINARY_DIR}/registry.cpp @ONLY)

add_library(tilewright_kernels STATIC ${sources} ${PROJECT_BINARY_DIR}/registry.cpp)
tilewright_unity(tilewright_kernels)
target_include_directories(tilewright_kernels
  PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR})
target_link_libraries(tilewright_kernels
  PUBLIC tilewright_lang tilewright_runtime tilewright_tune PRIVATE tilewright_flags)
set_property(GLOBAL APPEND PROPERTY TILEWRIGHT_PARTS tilewright_kernels)
set_property(GLOBAL APPEND PROPERTY TILEWRIGHT_OBJECTS $<TARGET_OBJECTS:tilewright_kernels>)

if(TILEWRIGHT_TESTS AND tests AND TARGET tilewright_io)
  tilewright_test(kernels_test
    SOURCES ${tests} ${PROJECT_SOURCE_DIR}/test/operator_fixture.cpp PARTS kernels io)
endif()

# Tests that go over all operators of the registry.
file(GLOB registry_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/kernels/*.cpp)
if(TILEWRIGHT_TESTS AND TARGET tilewright_io)
  tilewright_test(registry_test SOURCES ${registry_tests} PARTS kernels io)
endif()
