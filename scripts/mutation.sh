#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Deletes each barrier, fence and wait of every corpus and operator kernel, one at a time, and holds what the emulator does not
# report against the lists of reasons: kEquivalent in test/emu/mutation_test.cpp and test/kernels/mutation_survivors.txt.
# Of operators, every form counts that synchronises in an order of its own: small problems of all types and options that they
# are measured with, in each configuration that a search may take. Waits for an earlier launch have a test of their own,
# DependentOperator in test/kernels/dependent_launch_test.cpp.
#
# usage: scripts/mutation.sh [BUILD_FOLDER] [JOBS]     (default: build/dev, all cores; one process an operator)
# Prints for each operator the number of deletions and of survivors. LOGS names a folder for the output of each.

set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/dev}
jobs=${2:-$(nproc)}
logs=${LOGS:-$(mktemp -d)}
mkdir -p "$logs"

judge() {
  if [ "$1" = corpus ]; then
    "$build/emu_test" --gtest_filter='Mutation.*' >"$logs/corpus.log" 2>&1
  else
    TILEWRIGHT_MUTATION=all TILEWRIGHT_MUTATION_OPERATOR=$1 \
      "$build/registry_test" --gtest_filter='OperatorMutation.*' >"$logs/$1.log" 2>&1
  fi
  local status=$?
  echo "$1: $(grep -h '^deletions' "$logs/$1.log" || echo deletions of the corpus) $([ $status = 0 ] && echo right || echo FAILED)"
  return $status
}
export -f judge
export build logs
{
  echo corpus
  "$build/registry_test" --gtest_list_tests --gtest_filter='*OperatorCounters*' | sed -n 's|.*GoldenFile/\([a-z0-9_]*\).*|\1|p'
} | xargs -P "$jobs" -I NAME bash -c 'judge NAME'
status=$?
[ $status = 0 ] || grep -h -A 40 'survive without a reason\|is reported by now' "$logs"/*.log
exit $status
