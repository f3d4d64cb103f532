#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the PTX semantics and the emulator for aarch64 with Debian's cross compiler, and runs their tests in qemu if it is there.
#
# usage: scripts/aarch64.sh [BUILD_FOLDER]     needs: g++-aarch64-linux-gnu googletest libxxhash-dev [qemu-user]

set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath -m "${1:-build/aarch64}")
toolchain=(-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc
  -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++)
emulator=$(command -v qemu-aarch64 || true)
if [ -n "$emulator" ]; then
  toolchain+=("-DCMAKE_CROSSCOMPILING_EMULATOR=$emulator;-L;/usr/aarch64-linux-gnu")
fi

# Headers of the host's C library must not be seen: the one header that is needed goes to a folder of its own.
mkdir -p "$build/include"
cp /usr/include/xxhash.h "$build/include/"
cmake -S /usr/src/googletest -B "$build/googletest" "${toolchain[@]}" -DCMAKE_BUILD_TYPE=Release -DBUILD_GMOCK=OFF \
  "-DCMAKE_INSTALL_PREFIX=$build/prefix" >/dev/null
cmake --build "$build/googletest" --target install -j "$(nproc)" >/dev/null
cmake -S . -B "$build/tilewright" "${toolchain[@]}" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTILEWRIGHT_WERROR=ON \
  "-DXXHASH_INCLUDE_DIR=$build/include" "-DGTest_DIR=$build/prefix/lib/cmake/GTest" \
  -DTILEWRIGHT_CLI=OFF -DTILEWRIGHT_EXAMPLES=OFF -DTILEWRIGHT_BENCH=OFF >/dev/null
if [ -z "$emulator" ]; then # tests are asked for their names when they are linked
  cmake --build "$build/tilewright" --target tilewright_emu -j "$(nproc)"
  exit
fi
cmake --build "$build/tilewright" --target ptx_test emu_test -j "$(nproc)"
"$emulator" -L /usr/aarch64-linux-gnu "$build/tilewright/ptx_test" --gtest_filter='Semantics*'
"$emulator" -L /usr/aarch64-linux-gnu "$build/tilewright/emu_test" --gtest_filter='-Mutation*:*Schedule*'
