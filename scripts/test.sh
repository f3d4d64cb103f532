#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets everything up, builds everything and runs every test that this machine can run.
#
# usage: scripts/test.sh [CMake option, e.g. -DTILEWRIGHT_WERROR=ON]...

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/setup.sh

cmake --preset release "$@"
cmake --build --preset release
status=0
ctest --preset release -j "$(nproc)" --output-junit tests.xml --progress || status=$?
echo "test results: build/tests.xml"
exit "$status"
