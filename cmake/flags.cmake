# SPDX-License-Identifier: Apache-2.0
# The compiler flags of every target, as an interface library.
# -O3 makes a library that is a third larger; what gains from it asks for it: vector code and the emulator.
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

add_library(tilewright_flags INTERFACE)
target_compile_options(tilewright_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wundef
  -Wnon-virtual-dtor -Wimplicit-fallthrough -ffp-contract=off
  # g++ 12 sees overlapping copies in std::string's operator+ (GCC bug 105651, mended in 13).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  # Of sources compiled together, g++ takes all but the outer file for headers.
  $<$<AND:$<BOOL:${CMAKE_UNITY_BUILD}>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>
  $<$<BOOL:${TILEWRIGHT_WERROR}>:-Werror>)
if(TILEWRIGHT_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
