# SPDX-License-Identifier: Apache-2.0
# The C interface: a shared library that exports the functions of include/tilewright.h and nothing else.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/c/*.cpp)
add_library(tilewright_c SHARED ${sources})
tilewright_unity(tilewright_c)
target_include_directories(tilewright_c PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(tilewright_c PRIVATE TILEWRIGHT_VERSION="${PROJECT_VERSION}")
target_link_libraries(tilewright_c PRIVATE tilewright_library tilewright_flags)
tilewright_installed(tilewright_c)
target_link_options(tilewright_c PRIVATE
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/src/c/exports.map -Wl,--gc-sections)
set_target_properties(tilewright_c PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/src/c/exports.map)

if(TILEWRIGHT_TESTS)
  # A program in C against the shared library, as a user's would be.
  add_executable(c_interface_test ${PROJECT_SOURCE_DIR}/test/c/interface_test.c)
  set_target_properties(c_interface_test PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON)
  target_compile_options(c_interface_test PRIVATE -Wall -Wextra -Wpedantic)
  target_link_libraries(c_interface_test PRIVATE tilewright_c m)
  if(TILEWRIGHT_SANITIZE) # the library needs the sanitizers' runtime for C++
    set_target_properties(c_interface_test PROPERTIES LINKER_LANGUAGE CXX)
  endif()
  add_test(NAME c_interface COMMAND c_interface_test emu:sm_90a)
  # Compiles as long as structs, values and functions are those of the version.
  add_library(c_abi_test OBJECT ${PROJECT_SOURCE_DIR}/test/c/abi.c)
  set_target_properties(c_abi_test PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON)
  target_include_directories(c_abi_test PRIVATE ${PROJECT_SOURCE_DIR}/include)
  find_program(TILEWRIGHT_NM nm)
  add_test(NAME c_interface.exports_stay COMMAND ${CMAKE_COMMAND} -D NM=${TILEWRIGHT_NM}
    -D LIBRARY=$<TARGET_FILE:tilewright_c> -D EXPECTED=${PROJECT_SOURCE_DIR}/test/c/exports.txt
    -P ${PROJECT_SOURCE_DIR}/test/c/exports.cmake)
endif()

include(cmake/tvm_ffi.cmake)
