# SPDX-License-Identifier: Apache-2.0
# Fails if the C library exports other functions than the list says: removing one breaks programs (raise TW_ABI_VERSION).
execute_process(COMMAND ${NM} -D --defined-only ${LIBRARY} OUTPUT_VARIABLE text RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "nm does not read ${LIBRARY}")
endif()
string(REGEX MATCHALL "[TWDBR] [^\n@]+" found "${text}")
list(TRANSFORM found REPLACE "^. " "")
list(SORT found)
file(STRINGS ${EXPECTED} expected)
if(NOT "${found}" STREQUAL "${expected}")
  message(FATAL_ERROR "exported: ${found}\nexpected: ${expected}")
endif()
