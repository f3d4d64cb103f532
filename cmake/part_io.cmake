# SPDX-License-Identifier: Apache-2.0
# Tensors in files: npy, npz, safetensors. Without the libraries it is left out, and the program with it.
find_path(ZIP_INCLUDE_DIR zip.h)
find_library(ZIP_LIBRARY zip)  # Debian's CMake package of libzip asks for programs that are packaged apart
find_path(NLOHMANN_JSON_INCLUDE_DIR nlohmann/json.hpp)
if(NOT ZIP_INCLUDE_DIR OR NOT ZIP_LIBRARY OR NOT NLOHMANN_JSON_INCLUDE_DIR)
  if(TILEWRIGHT_CLI OR (TILEWRIGHT_TESTS AND NOT CMAKE_CROSSCOMPILING))
    message(FATAL_ERROR "libzip or nlohmann-json not found: install libzip-dev and nlohmann-json3-dev, "
                        "or set TILEWRIGHT_CLI and TILEWRIGHT_TESTS to OFF")
  endif()
  return()
endif()
tilewright_part(io DEPENDS runtime LIBRARIES ${ZIP_LIBRARY})
target_include_directories(tilewright_io SYSTEM PRIVATE ${ZIP_INCLUDE_DIR} ${NLOHMANN_JSON_INCLUDE_DIR})
