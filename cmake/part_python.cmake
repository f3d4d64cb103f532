# SPDX-License-Identifier: Apache-2.0
# The extension module of the Python package: tilewright._core, with everything linked in. `pip install .` asks for it.
option(TILEWRIGHT_PYTHON "Build the Python package's extension module (needs nanobind)" OFF)
if(NOT TILEWRIGHT_PYTHON)
  return()
endif()
if(CMAKE_VERSION VERSION_GREATER_EQUAL 3.26)
  set(development Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
else()
  set(development Development.Module)
endif()
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter ${development})
if(NOT nanobind_ROOT)
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
    OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
find_package(nanobind CONFIG QUIET)
if(NOT nanobind_FOUND)
  message(FATAL_ERROR "nanobind not found for ${Python_EXECUTABLE}: pip install nanobind in its environment, "
                      "name another with -DPython_EXECUTABLE, or set TILEWRIGHT_PYTHON to OFF")
endif()

# tilewright_python_module(NAME source...): an extension module that has "python/operator_call.h", with everything linked
# in. Extensions of users are made by it, too: see python/example_extension.
set(TILEWRIGHT_PYTHON_SOURCES ${CMAKE_CURRENT_LIST_DIR}/../src/c/tensor.cpp)
foreach(name emulation errors framework operator_call operator_function)
  list(APPEND TILEWRIGHT_PYTHON_SOURCES ${CMAKE_CURRENT_LIST_DIR}/../src/python/${name}.cpp)
endforeach()
set_property(GLOBAL PROPERTY TILEWRIGHT_PYTHON_SOURCES ${TILEWRIGHT_PYTHON_SOURCES})
function(tilewright_python_module name)
  get_property(sources GLOBAL PROPERTY TILEWRIGHT_PYTHON_SOURCES)
  nanobind_add_module(${name} NB_STATIC NB_SUPPRESS_WARNINGS STABLE_ABI NOMINSIZE NB_DOMAIN ${name} ${ARGN} ${sources})
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF) # its sources lie in several folders
  get_target_property(include tilewright_base INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(${name} PRIVATE ${include} ${include}/../src)
  target_link_libraries(${name} PRIVATE tilewright_kernels tilewright_tune tilewright_runtime tilewright_flags)
  target_link_options(${name} PRIVATE -Wl,--gc-sections -Wl,--exclude-libs,ALL)
endfunction()

tilewright_python_module(_core ${PROJECT_SOURCE_DIR}/src/python/module.cpp ${PROJECT_SOURCE_DIR}/src/python/tools.cpp
  ${PROJECT_SOURCE_DIR}/src/python/emulate.cpp)
target_compile_definitions(_core PRIVATE TILEWRIGHT_VERSION="${PROJECT_VERSION}"
  TILEWRIGHT_COMPILER="${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")

# The package as it is imported, beside the module: build/python/tilewright.
set(package ${PROJECT_BINARY_DIR}/python/tilewright)
set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${package})
file(GLOB modules CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/tilewright/*.py
  ${PROJECT_SOURCE_DIR}/python/tilewright/*.pyi)
list(APPEND modules ${PROJECT_SOURCE_DIR}/python/tilewright/py.typed)
add_custom_command(OUTPUT ${package}/ops.pyi
  COMMAND ${CMAKE_COMMAND} -E copy_if_different ${modules} ${package}
  COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/python/tilewright/_stubs.py ${package}
  DEPENDS _core ${modules}
  COMMENT "Writing the stubs of tilewright.ops")
add_custom_target(python_package ALL DEPENDS ${package}/ops.pyi)
# For wheels alone: an installation of the library does without.
install(TARGETS _core LIBRARY DESTINATION tilewright COMPONENT python EXCLUDE_FROM_ALL)
install(FILES ${modules} ${package}/ops.pyi DESTINATION tilewright COMPONENT python
  EXCLUDE_FROM_ALL)

if(TILEWRIGHT_TESTS)
  tilewright_python_module(_scaled_add ${PROJECT_SOURCE_DIR}/python/example_extension/scaled_add.cpp)
  set_target_properties(_scaled_add PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python)
  add_dependencies(python_package _scaled_add)
  execute_process(COMMAND ${Python_EXECUTABLE} -c "import ml_dtypes, numpy, pytest"
    RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
  if(missing EQUAL 0)
    add_test(NAME python COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${PROJECT_BINARY_DIR}/python
      ${Python_EXECUTABLE} -m pytest -q -p no:cacheprovider ${PROJECT_SOURCE_DIR}/python/tests)
  else()
    message(STATUS "The Python tests are left out: ${Python_EXECUTABLE} has no ml_dtypes, numpy or pytest")
  endif()
endif()
