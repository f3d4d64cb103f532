# SPDX-License-Identifier: Apache-2.0
# Builds each bench/NAME.cpp as the program NAME_bench, and all kernels/*/bench.cpp as kernels_bench.
if(NOT TILEWRIGHT_BENCH)
  return()
endif()

# The errors of the maths functions over all f32 numbers: its own options, no Google Benchmark.
tilewright_program(maths_sweep SOURCES ${PROJECT_SOURCE_DIR}/bench/maths/sweep.cpp
  ${PROJECT_SOURCE_DIR}/bench/maths/device_sweep.cpp ${PROJECT_SOURCE_DIR}/bench/maths/reference.cpp)
if(TILEWRIGHT_TESTS)
  # The references agree with the host's library; emulated, 16,384 inputs a function give the host's bits.
  add_test(NAME maths_sweep.references COMMAND maths_sweep --references 1 --samples 65536)
  add_test(NAME maths_sweep.emulated
    COMMAND maths_sweep --device emu:sm_90a --stride 262145 --log2-pairs 32 --samples 16384)
endif()

# The GEMMs of the lessons beside cuBLASLt: its own options, too.
tilewright_program(gemm_bench SOURCES ${PROJECT_SOURCE_DIR}/bench/gemm/gemm.cpp
  ${PROJECT_SOURCE_DIR}/bench/gemm/cublaslt.cpp)
set_target_properties(gemm_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)

# kda_conv_verify over the shapes that Triton was measured on: its own options too.
tilewright_program(kda_verify SOURCES ${PROJECT_SOURCE_DIR}/bench/kda/verify.cpp)

find_package(benchmark QUIET)
if(NOT benchmark_FOUND)
  message(STATUS "Google Benchmark not found: the benchmarks are not built")
  return()
endif()

# tilewright_bench(NAME SOURCES file...)
function(tilewright_bench name)
  tilewright_program(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE benchmark::benchmark_main benchmark::benchmark)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
endfunction()

file(GLOB benches CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.cpp)
foreach(bench ${benches})
  cmake_path(GET bench STEM stem)
  set(parts_emulator emu) # the others link all
  tilewright_bench(${stem}_bench SOURCES ${bench} PARTS ${parts_${stem}})
endforeach()

file(GLOB operators CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/*/bench.cpp)
if(operators)
  tilewright_bench(kernels_bench SOURCES ${operators})
endif()
