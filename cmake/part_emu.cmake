# SPDX-License-Identifier: Apache-2.0
# Runs PTX on the CPU, with checks and counters.
tilewright_part(emu DEPENDS ptx)
target_compile_options(tilewright_emu PRIVATE $<$<CONFIG:Release>:-O3>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  # The least that the vector code is compiled for, too: bits are counted and maxima found in one instruction.
  target_compile_options(tilewright_emu PRIVATE -march=x86-64-v2)
endif()
