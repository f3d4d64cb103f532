# SPDX-License-Identifier: Apache-2.0
# Where CMAKE_UNITY_BUILD is on, compiles sources of a folder together, so that headers are read once for several of them.
# Unnamed namespaces of a folder therefore have names that differ.

# tilewright_unity(TARGET): of each folder's sources up to eight at a time.
function(tilewright_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "schema\\.cpp$") # an operator's own words hide those that schemas share
  foreach(source ${sources})
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
    cmake_path(GET folder PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    math(EXPR part "0${count_${folder}} / 8")
    math(EXPR count_${folder} "0${count_${folder}} + 1")
    set_property(SOURCE ${source} PROPERTY UNITY_GROUP ${folder}_${part})
  endforeach()
endfunction()
