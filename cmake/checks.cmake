# SPDX-License-Identifier: Apache-2.0
# Tests of the tree itself: headers alone, code that must not compile, includes, file rules, docs.
set(checks ${PROJECT_SOURCE_DIR}/test/structure)

# Every public header compiles alone and stays within its budget of preprocessed lines.
file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/tilewright/*.h)
foreach(header ${headers})
  cmake_path(GET header STEM stem)
  add_test(NAME header.${stem} COMMAND ${CMAKE_COMMAND}
    -D CXX=${CMAKE_CXX_COMPILER} -D CXX_ID=${CMAKE_CXX_COMPILER_ID}-${CMAKE_CXX_COMPILER_VERSION}
    -D INCLUDE=${PROJECT_SOURCE_DIR}/include -D HEADER=${header} -P ${checks}/header.cmake)
  set_tests_properties(header.${stem} PROPERTIES TIMEOUT 120 LABELS structure)
endforeach()

# Every test/compile_fail file builds as it is and fails, with its text, under -DTW_MISTAKE.
file(GLOB mistakes CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/test/compile_fail/*.cpp)
foreach(mistake ${mistakes})
  cmake_path(GET mistake STEM stem)
  add_test(NAME compile_fail.${stem} COMMAND ${CMAKE_COMMAND}
    -D CXX=${CMAKE_CXX_COMPILER} -D INCLUDE=${PROJECT_SOURCE_DIR}/include -D SOURCE=${mistake}
    -P ${checks}/compile_fail.cmake)
  set_tests_properties(compile_fail.${stem} PROPERTIES TIMEOUT 120 LABELS structure)
endforeach()

file(GLOB tests CONFIGURE_DEPENDS ${checks}/*.cpp)
tilewright_test(structure_test SOURCES ${tests})

# README and docs show the figures of bench/results and the code of the examples.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND)
  add_test(NAME docs.are_up_to_date
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/docs.py --check)
else()
  add_test(NAME docs.are_up_to_date COMMAND ${CMAKE_COMMAND} -E echo "skipped: no python3")
endif()
set_tests_properties(docs.are_up_to_date PROPERTIES
  SKIP_REGULAR_EXPRESSION "skipped: no python3" LABELS structure)

# docs/operators.md is what the program's operators say, docs/pictures what the examples and layouts look like.
if(Python3_FOUND AND TARGET tilewright)
  add_test(NAME docs.show_the_lessons
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/pictures.py --check
      --program $<TARGET_FILE:tilewright>)
  set_tests_properties(docs.show_the_lessons PROPERTIES LABELS structure)
  add_test(NAME docs.describe_the_operators
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/docs.py --check
      --program $<TARGET_FILE:tilewright>)
  set_tests_properties(docs.describe_the_operators PROPERTIES LABELS structure)
endif()
