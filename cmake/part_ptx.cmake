# SPDX-License-Identifier: Apache-2.0
# The PTX module: instruction table, printer, parser, capability check, lane semantics.
tilewright_part(ptx DEPENDS base)
include(cmake/vector.cmake)
tilewright_vector_sources(ptx src/ptx/semantics/vector)
