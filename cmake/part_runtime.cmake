# SPDX-License-Identifier: Apache-2.0
tilewright_part(runtime DEPENDS lang emu LIBRARIES Threads::Threads ${CMAKE_DL_LIBS})
