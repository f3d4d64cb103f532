#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Deletes each barrier, fence and wait of every corpus and operator kernel, one at a time, and
# holds what the emulator does not report against the lists of reasons. Usage: scripts/mutation.sh [BUILD_FOLDER]
set -e
build=${1:-build/dev}
"$build/emu_test" --gtest_filter='Mutation.*'
TILEWRIGHT_MUTATION=all "$build/registry_test" --gtest_filter='OperatorMutation.*'
