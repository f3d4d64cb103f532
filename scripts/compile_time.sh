#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures how long a program that includes <tilewright/tilewright.h> and launches a kernel takes to compile.
#
# usage: scripts/compile_time.sh [SOURCE]     (default examples/01_vector_add.cpp)
# Writes the median of five compilations to ${OUT:-bench/results}/compile_time.json; the promise is 3 s.

set -euo pipefail
cd "$(dirname "$0")/.."
source_=${1:-examples/01_vector_add.cpp}
compiler=${CXX:-g++}
out=${OUT:-bench/results}
object=$(mktemp)
trap 'rm -f "$object"' EXIT

times=$(for _ in 1 2 3 4 5; do
  begin=$(date +%s%N)
  "$compiler" -std=c++20 -O2 -Iinclude -I. -c "$source_" -o "$object"
  echo $((($(date +%s%N) - begin) / 1000))
done | sort -n)
median=$(sed -n 3p <<<"$times")

mkdir -p "$out"
cat >"$out/compile_time.json" <<JSON
{
  "context": {
    "date": "$(date -Iseconds)",
    "device": "$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)",
    "assembler": "$("$compiler" --version | head -n 1)",
    "commit": "${COMMIT:-$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)}"
  },
  "benchmarks": [
    {"name": "compile $source_", "real_time": $median, "time_unit": "us", "limit_s": 3}
  ]
}
JSON
echo "$source_: $median us with $compiler (limit 3 s); written to $out/compile_time.json"
