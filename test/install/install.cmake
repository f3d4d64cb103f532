# SPDX-License-Identifier: Apache-2.0
# Installs the build into a folder, moves it, and builds a project outside the tree against it: by CMake and by pkg-config.
set(work ${BUILD}/install_test)
file(REMOVE_RECURSE ${work})

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${output}")
  endif()
endfunction()

foreach(component runtime development)
  run("installing ${component}" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/first --component ${component})
endforeach()
file(RENAME ${work}/first ${work}/prefix) # nothing in it may hold the path that it was installed to

run("configuring the consumer" ${CMAKE_COMMAND} -S ${SOURCE} -B ${work}/consumer -DCMAKE_PREFIX_PATH=${work}/prefix
  -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX})
run("building the consumer" ${CMAKE_COMMAND} --build ${work}/consumer)
run("running the consumer in C++" ${work}/consumer/consumer_cpp)
run("running the consumer in C" ${work}/consumer/consumer_c)

find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG)
  file(GLOB_RECURSE pc ${work}/prefix/*/tilewright_c.pc)
  cmake_path(GET pc PARENT_PATH folder)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder} ${PKG_CONFIG} --cflags --libs tilewright_c
    OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "pkg-config does not find tilewright_c in ${folder}")
  endif()
  separate_arguments(flags)
  cmake_path(GET folder PARENT_PATH libraries)
  run("building by pkg-config" ${CC} ${SOURCE}/consumer.c -o ${work}/by_pkg_config ${flags} -Wl,-rpath,${libraries})
  run("running what pkg-config built" ${work}/by_pkg_config)
endif()
