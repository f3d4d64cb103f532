# SPDX-License-Identifier: Apache-2.0
# Configuration spaces, the records of tuned/ (built in), and the search that makes them.
tilewright_part(tune DEPENDS runtime LIBRARIES Threads::Threads)

file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tuned/*.tuned)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
set(TUNED_FILES "")
foreach(file ${files})
  cmake_path(GET file FILENAME name)
  file(READ ${file} text)
  string(APPEND TUNED_FILES "{\"tuned/${name}\", R\"tuned(${text})tuned\"}, ")
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/tuned_files.cpp.in ${PROJECT_BINARY_DIR}/tuned_files.cpp @ONLY)
target_sources(tilewright_tune PRIVATE ${PROJECT_BINARY_DIR}/tuned_files.cpp)
