# SPDX-License-Identifier: Apache-2.0
# Installs the program, the libraries, the headers, a CMake package and pkg-config files; packs a Debian package.
include(CMakePackageConfigHelpers)

set(TILEWRIGHT_OPERATOR_INCLUDE ${CMAKE_INSTALL_INCLUDEDIR}/tilewright_operators)
target_include_directories(tilewright_library INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}> $<INSTALL_INTERFACE:${TILEWRIGHT_OPERATOR_INCLUDE}>)
install(TARGETS tilewright_library EXPORT tilewright
  LIBRARY COMPONENT runtime NAMELINK_COMPONENT development ARCHIVE COMPONENT development)
# Programs in C link tilewright::tilewright_c.
install(TARGETS tilewright_c EXPORT tilewright LIBRARY COMPONENT runtime NAMELINK_COMPONENT development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET tilewright)
  install(TARGETS tilewright RUNTIME COMPONENT runtime)
endif()
if(TARGET tilewright_nvptxcompiler)
  install(TARGETS tilewright_nvptxcompiler LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT assembler)
endif()
# Everything that `cmake --install` takes, and neither tests nor benchmarks.
add_custom_target(installed DEPENDS tilewright_library tilewright_c)
foreach(target tilewright tilewright_nvptxcompiler tilewright_tvm_ffi)
  if(TARGET ${target})
    add_dependencies(installed ${target})
  endif()
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/kernels DESTINATION ${TILEWRIGHT_OPERATOR_INCLUDE} COMPONENT development
  FILES_MATCHING PATTERN "*.h" PATTERN "reference.h" EXCLUDE PATTERN "*_fixture.h" EXCLUDE PATTERN "test_problem.h" EXCLUDE)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tilewright)
install(EXPORT tilewright NAMESPACE tilewright:: FILE tilewright-targets.cmake DESTINATION ${package_folder}
  COMPONENT development)
configure_package_config_file(cmake/tilewright-config.cmake.in ${PROJECT_BINARY_DIR}/tilewright-config.cmake
  INSTALL_DESTINATION ${package_folder})
# Before 1.0 a minor version may break sources; see docs/deployment.md.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tilewright-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tilewright-config.cmake ${PROJECT_BINARY_DIR}/tilewright-config-version.cmake
  DESTINATION ${package_folder} COMPONENT development)
list(TRANSFORM TILEWRIGHT_PRIVATE_LIBRARIES PREPEND -l)
list(JOIN TILEWRIGHT_PRIVATE_LIBRARIES " " TILEWRIGHT_PRIVATE_LIBRARIES)
file(RELATIVE_PATH TILEWRIGHT_PREFIX_FROM_PC /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
foreach(name tilewright tilewright_c)
  configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()

set(CPACK_PACKAGE_NAME tilewright)
set(CPACK_PACKAGE_VENDOR Tilewright)
set(CPACK_PACKAGE_CONTACT "Tilewright <tilewright@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "GPU kernels in C++, specialised while a program runs, tested without a GPU")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
include(CPack)

if(TILEWRIGHT_TESTS)
  set(max_bytes "") # of builds that are made to be installed
  if(TILEWRIGHT_SHARED AND CMAKE_BUILD_TYPE STREQUAL "Release")
    set(max_bytes 15000000)
  endif()
  add_test(NAME install.a_project_outside_finds_the_package COMMAND ${CMAKE_COMMAND} -D MAX_BYTES=${max_bytes}
    -D LINKAGE=$<$<NOT:$<BOOL:${TILEWRIGHT_SHARED}>>:--static>
    -D BUILD=${PROJECT_BINARY_DIR} -D SOURCE=${PROJECT_SOURCE_DIR}/examples/outside
    -D CC=${CMAKE_C_COMPILER} -D CXX=${CMAKE_CXX_COMPILER}
    -P ${PROJECT_SOURCE_DIR}/test/install/install.cmake)
  set_tests_properties(install.a_project_outside_finds_the_package PROPERTIES TIMEOUT 300 LABELS structure)
endif()
