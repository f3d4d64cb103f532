# SPDX-License-Identifier: Apache-2.0
# libtilewright_tvm_ffi: the operators as functions that tvm_ffi.load_module() finds, where apache-tvm-ffi is installed.
find_program(TVM_FFI_CONFIG tvm-ffi-config HINTS $ENV{VIRTUAL_ENV}/bin
  DOC "The program tvm-ffi-config of the package apache-tvm-ffi, which libtilewright_tvm_ffi is built with")
if(NOT TVM_FFI_CONFIG)
  message(STATUS "tvm-ffi-config not found (pip install apache-tvm-ffi): libtilewright_tvm_ffi is not built")
  return()
endif()
foreach(what includedir dlpack-includedir libdir)
  execute_process(COMMAND ${TVM_FFI_CONFIG} --${what}
    OUTPUT_VARIABLE TVM_FFI_${what} OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endforeach()

set(DECLARATIONS "")
set(FUNCTIONS "")
foreach(name ${TILEWRIGHT_OPERATORS})
  string(APPEND DECLARATIONS "const Operator& ${name}_operator();\n")
  string(APPEND FUNCTIONS "TVM_FFI_DLL_EXPORT int __tvm_ffi_${name}(void*, const TVMFFIAny* arguments, int32_t count, "
    "TVMFFIAny* result) {\n"
    "  return tilewright::c::call_by_tvm_ffi(tilewright::${name}_operator(), arguments, count, result);\n}\n")
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/tvm_ffi_functions.cpp.in ${PROJECT_BINARY_DIR}/tvm_ffi_functions.cpp @ONLY)

add_library(tilewright_tvm_ffi MODULE ${PROJECT_BINARY_DIR}/tvm_ffi_functions.cpp
  ${PROJECT_SOURCE_DIR}/src/c/tvm_ffi/call.cpp ${PROJECT_SOURCE_DIR}/src/c/tensor.cpp)
target_include_directories(tilewright_tvm_ffi PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_include_directories(tilewright_tvm_ffi SYSTEM PRIVATE ${TVM_FFI_includedir} ${TVM_FFI_dlpack-includedir})
target_link_libraries(tilewright_tvm_ffi PRIVATE tilewright_library tilewright_flags ${TVM_FFI_libdir}/libtvm_ffi.so)
target_link_options(tilewright_tvm_ffi PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
set_target_properties(tilewright_tvm_ffi PROPERTIES CXX_VISIBILITY_PRESET hidden)
tilewright_installed(tilewright_tvm_ffi)
install(TARGETS tilewright_tvm_ffi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT tvm_ffi)

if(TILEWRIGHT_TESTS)
  cmake_path(GET TVM_FFI_CONFIG PARENT_PATH folder)
  find_program(TVM_FFI_PYTHON NAMES python3 python HINTS ${folder} NO_DEFAULT_PATH)
  add_test(NAME tvm_ffi COMMAND ${TVM_FFI_PYTHON} ${PROJECT_SOURCE_DIR}/test/c/tvm_ffi_test.py
    $<TARGET_FILE:tilewright_tvm_ffi>)
  set_tests_properties(tvm_ffi PROPERTIES SKIP_REGULAR_EXPRESSION "skipped: ")
endif()
