# SPDX-License-Identifier: Apache-2.0
# Compiles a part's vector/ folder once per instruction-set level; the program picks a level when it starts.

# Builds for developers compile one level, which is a third of the time.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(default_levels generic)
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(default_levels v2 v3 v4)
else()
  set(default_levels v3)
endif()
set(TILEWRIGHT_VECTOR_LEVELS ${default_levels} CACHE STRING
  "Levels that vector code is compiled for: v2;v3;v4, one of them, or generic")

# tilewright_vector_sources(PART DIRECTORY): adds DIRECTORY/*.cpp to the part's library, on x86-64 three times.
function(tilewright_vector_sources part directory)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${directory}/*.cpp)
  set(levels ${TILEWRIGHT_VECTOR_LEVELS})
  list(LENGTH levels count)
  if(count EQUAL 1)
    target_compile_definitions(tilewright_${part} PRIVATE TW_ONE_LEVEL=${levels})
  endif()
  foreach(level ${levels})
    set(library tilewright_${part}_vector_${level})
    add_library(${library} OBJECT ${sources})
    target_include_directories(${library} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_compile_definitions(${library} PRIVATE TW_ISA=${level})
    target_link_libraries(${library} PRIVATE tilewright_flags)
    # Values do not depend on the optimisation level; -O0 would make the emulator useless in debug builds.
    # Under sanitizers the templates take minutes to optimise. v2 is for machines from before 2013: small rather than fast.
    set(optimise $<IF:$<BOOL:${TILEWRIGHT_SANITIZE}>,-O1,-O3>)
    if(level STREQUAL "v2")
      set(optimise -Os)
    endif()
    target_compile_options(${library} PRIVATE ${optimise} -fno-math-errno -fno-trapping-math -ffp-contract=off
      $<$<CONFIG:Debug,RelWithDebInfo>:-g1>) # full debug information of thousands of templates is slow to write
    if(TILEWRIGHT_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang") # instrumented loops are not vectorised
      target_compile_options(${library} PRIVATE -Wno-pass-failed)
    endif()
    set_target_properties(${library} PROPERTIES CXX_VISIBILITY_PRESET hidden UNITY_BUILD OFF) # thousands, which programs never name
    if(NOT level STREQUAL "generic")
      target_compile_options(${library} PRIVATE -march=x86-64-${level})
    endif()
    if(level STREQUAL "v4")
      target_compile_options(${library} PRIVATE -mprefer-vector-width=512)
    endif()
    target_sources(tilewright_${part} PRIVATE $<TARGET_OBJECTS:${library}>)
    set_property(GLOBAL APPEND PROPERTY TILEWRIGHT_OBJECTS $<TARGET_OBJECTS:${library}>)
  endforeach()
endfunction()
