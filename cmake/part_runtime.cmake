# SPDX-License-Identifier: Apache-2.0
# Devices, memory, streams, assemblers, caches and launches.
tilewright_part(runtime DEPENDS lang emu LIBRARIES Threads::Threads ${CMAKE_DL_LIBS})
