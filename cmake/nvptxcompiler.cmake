# SPDX-License-Identifier: Apache-2.0
# Builds the plug-in libtilewright_nvptxcompiler where NVIDIA's static PTX compiler library is found.
set(TILEWRIGHT_PLUGIN_DIR ${PROJECT_BINARY_DIR} CACHE PATH "Folder where programs look for the plug-in first")
set(TILEWRIGHT_NVPTXCOMPILER_DIR "$ENV{TILEWRIGHT_NVPTXCOMPILER_DIR}" CACHE PATH
  "Folder with lib/libnvptxcompiler_static.a and include/nvPTXCompiler.h")

# The toolkit, or the PyPI package nvidia-nvptxcompiler in the usual places.
file(GLOB nvptx_wheels
  $ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia/cu*
  $ENV{HOME}/.local/lib/python3*/site-packages/nvidia/cu*
  /usr/local/lib/python3*/*-packages/nvidia/cu*
  /usr/lib/python3*/*-packages/nvidia/cu*)
find_library(NVPTXCOMPILER_LIBRARY libnvptxcompiler_static.a
  HINTS ${TILEWRIGHT_NVPTXCOMPILER_DIR} PATHS /usr/local/cuda ${nvptx_wheels}
  PATH_SUFFIXES lib lib64 targets/x86_64-linux/lib targets/sbsa-linux/lib)
find_path(NVPTXCOMPILER_INCLUDE_DIR nvPTXCompiler.h
  HINTS ${TILEWRIGHT_NVPTXCOMPILER_DIR} PATHS /usr/local/cuda ${nvptx_wheels}
  PATH_SUFFIXES include targets/x86_64-linux/include targets/sbsa-linux/include)
mark_as_advanced(NVPTXCOMPILER_LIBRARY NVPTXCOMPILER_INCLUDE_DIR)

if(NVPTXCOMPILER_LIBRARY AND NVPTXCOMPILER_INCLUDE_DIR)
  message(STATUS "nvPTXCompiler: ${NVPTXCOMPILER_LIBRARY}")
  add_library(tilewright_nvptxcompiler MODULE ${PROJECT_SOURCE_DIR}/src/runtime/plugin/nvptxcompiler.c)
  target_include_directories(tilewright_nvptxcompiler PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(tilewright_nvptxcompiler SYSTEM PRIVATE ${NVPTXCOMPILER_INCLUDE_DIR})
  target_link_libraries(tilewright_nvptxcompiler PRIVATE
    ${NVPTXCOMPILER_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS} m)
  target_link_options(tilewright_nvptxcompiler PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
  set_target_properties(tilewright_nvptxcompiler PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} C_STANDARD 99)
else()
  message(STATUS "nvPTXCompiler not found (pip install nvidia-nvptxcompiler): ptxas or the driver assemble")
endif()
