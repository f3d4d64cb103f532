# SPDX-License-Identifier: Apache-2.0
tilewright_part(runtime DEPENDS lang emu LIBRARIES Threads::Threads ${CMAKE_DL_LIBS})
target_include_directories(tilewright_runtime SYSTEM PRIVATE ${XXHASH_INCLUDE_DIR})
include(cmake/nvptxcompiler.cmake)
target_compile_definitions(tilewright_runtime PRIVATE TILEWRIGHT_PLUGIN_DIR="${TILEWRIGHT_PLUGIN_DIR}")

if(TILEWRIGHT_TESTS)
  # A driver without a GPU: the tests of the CUDA device run against it on any machine.
  add_library(tilewright_fake_cuda MODULE ${PROJECT_SOURCE_DIR}/test/runtime/fake/fake_cuda.cpp)
  target_include_directories(tilewright_fake_cuda PRIVATE
    ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/test)
  target_link_libraries(tilewright_fake_cuda PRIVATE tilewright_flags)
  file(GLOB cuda_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/runtime/fake/*_test.cpp)
  tilewright_test(runtime_cuda_test SOURCES ${cuda_tests} PARTS runtime)
  target_compile_definitions(runtime_cuda_test PRIVATE
    TILEWRIGHT_FAKE_CUDA="$<TARGET_FILE:tilewright_fake_cuda>")
  add_dependencies(runtime_cuda_test tilewright_fake_cuda)
  if(TILEWRIGHT_SANITIZE) # the header for C declares the driver's handles as void*, the fake driver by their types
    set_source_files_properties(${PROJECT_SOURCE_DIR}/test/runtime/fake/bundle_test.cpp
      PROPERTIES COMPILE_OPTIONS -fno-sanitize=function)
  endif()
endif()
