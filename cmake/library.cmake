# SPDX-License-Identifier: Apache-2.0
# libtilewright: all parts in one library, which the program, the C interface and programs of users share.

# Builds for developers make an archive, so that their programs are of one file.
set(shared OFF)
if(CMAKE_BUILD_TYPE MATCHES "^(Release|MinSizeRel)$")
  set(shared ON)
endif()
option(TILEWRIGHT_SHARED "Make libtilewright a shared library, not an archive" ${shared})

get_property(objects GLOBAL PROPERTY TILEWRIGHT_OBJECTS)
set(kind STATIC)
if(TILEWRIGHT_SHARED)
  set(kind SHARED)
endif()
add_library(tilewright_library ${kind} ${objects})
set_target_properties(tilewright_library PROPERTIES OUTPUT_NAME tilewright EXPORT_NAME tilewright LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}) # C++: see docs/deployment.md
target_compile_features(tilewright_library INTERFACE cxx_std_20)
target_include_directories(tilewright_library INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
target_link_libraries(tilewright_library PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
set(TILEWRIGHT_PRIVATE_LIBRARIES ${CMAKE_DL_LIBS})
if(TARGET tilewright_io) # tensors in files
  target_link_libraries(tilewright_library PRIVATE $<BUILD_INTERFACE:${ZIP_LIBRARY}> $<INSTALL_INTERFACE:zip>)
  list(APPEND TILEWRIGHT_PRIVATE_LIBRARIES zip)
endif()

# tilewright_installed(TARGET): has no symbols but the exported ones, and finds the library wherever both are moved to.
function(tilewright_installed target)
  target_link_options(${target} PRIVATE $<$<CONFIG:Release,MinSizeRel>:-s>)
  set_target_properties(${target} PROPERTIES BUILD_RPATH_USE_ORIGIN ON
    INSTALL_RPATH "$ORIGIN;$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
endfunction()

if(TILEWRIGHT_SHARED)
  set(exports ${PROJECT_SOURCE_DIR}/cmake/library_exports.map)
  target_link_options(tilewright_library PRIVATE -Wl,--version-script=${exports} -Wl,-Bsymbolic-functions -Wl,--gc-sections)
  set_target_properties(tilewright_library PROPERTIES LINK_DEPENDS ${exports})
  tilewright_installed(tilewright_library)
endif()
