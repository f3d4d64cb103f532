# SPDX-License-Identifier: Apache-2.0
# Compiles one source as it is (must build) and with -DTW_MISTAKE (must fail with the text of its `// expect:` line).
file(STRINGS ${SOURCE} expected REGEX "// expect: ")
list(LENGTH expected count)
if(NOT count EQUAL 1)
  message(FATAL_ERROR "${SOURCE} has ${count} lines with '// expect: TEXT'; it needs one")
endif()
string(REGEX REPLACE ".*// expect: *" "" expected "${expected}")

set(command ${CMAKE_COMMAND} -E env LC_ALL=C ${CXX} -std=c++20 -I ${INCLUDE} -fsyntax-only ${SOURCE})
execute_process(COMMAND ${command} RESULT_VARIABLE status ERROR_VARIABLE errors)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} must build without TW_MISTAKE:\n${errors}")
endif()

execute_process(COMMAND ${command} -DTW_MISTAKE RESULT_VARIABLE status ERROR_VARIABLE errors)
if(status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} builds with TW_MISTAKE, but must fail with: ${expected}")
endif()
string(FIND "${errors}" "${expected}" at)
if(at EQUAL -1)
  message(FATAL_ERROR "${SOURCE} fails without the text '${expected}':\n${errors}")
endif()
