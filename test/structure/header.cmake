# SPDX-License-Identifier: Apache-2.0
# Compiles one public header alone and counts its preprocessed lines: cmake -D CXX= -D CXX_ID= -D INCLUDE= -D HEADER= -P
set(budget 40000) # lines, as g++ 12 counts them; other compilers' libraries differ, and are only reported
if(HEADER MATCHES "/tilewright.h$")
  set(budget 60000) # all the others together
endif()

set(flags -std=c++20 -x c++ -I ${INCLUDE} -Wall -Wextra)
execute_process(COMMAND ${CXX} ${flags} -fsyntax-only ${HEADER} RESULT_VARIABLE status ERROR_VARIABLE errors)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${HEADER} does not compile alone:\n${errors}")
endif()

execute_process(COMMAND ${CXX} ${flags} -E ${HEADER} OUTPUT_VARIABLE text ERROR_QUIET)
string(REGEX REPLACE "[^\n]" "" newlines "${text}")
string(LENGTH "${newlines}" lines)
if(lines GREATER budget AND CXX_ID MATCHES "^GNU-12")
  message(FATAL_ERROR "${HEADER} costs ${lines} preprocessed lines, more than ${budget}; "
    "include less, or move bodies to a .cpp")
endif()
message(STATUS "${lines} preprocessed lines of ${budget}")
