# SPDX-License-Identifier: Apache-2.0
# The PTX module: instruction table, printer, parser, capability check, lane semantics.
tilewright_part(ptx DEPENDS base)
include(cmake/vector.cmake)
tilewright_vector_sources(ptx src/ptx/semantics/vector)
if(TARGET ptx_test)
  target_sources(ptx_test PRIVATE ${PROJECT_SOURCE_DIR}/test/ptx/row_samples.cpp ${PROJECT_SOURCE_DIR}/test/ptx/ptxas.cpp)
endif()
