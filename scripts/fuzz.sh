#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The fuzz job: mutated PTX files through the parser (and printer) and through the emulator, under the address and
# undefined-behaviour sanitizers; any crash, hang or report fails it. Writes what was run to bench/results/fuzz.json.
#
# usage: scripts/fuzz.sh [JOBS]     JOBS: processes at a time (default: all cores)
# PARSED and EMULATED say how many files (1000000 and 50000); PROGRAMS names a folder with parse_fuzz and emulate_fuzz
# that are built already, RESULT another file to write.

set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-$(nproc)}
parsed=${PARSED:-1000000}
emulated=${EMULATED:-50000}
programs=${PROGRAMS:-build/sanitize}
result=${RESULT:-bench/results/fuzz.json}
if [ -z "${PROGRAMS:-}" ]; then
  cmake --preset sanitize >/dev/null
  cmake --build --preset sanitize --target parse_fuzz emulate_fuzz >/dev/null
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/ptx"
find test/data test/fuzz/corpus/parse test/fuzz/corpus/emulate -name '*.ptx' -print0 |
  while IFS= read -r -d '' file; do cp "$file" "$work/ptx/$(echo "$file" | tr / _)"; done

# search NAME RUNS: RUNS files in JOBS processes, each with a seed of its own.
search() {
  local name=$1 runs=$2 pids=() seed
  for seed in $(seq "$jobs"); do
    "$programs/${name}_fuzz" "$work/ptx" --runs $(((runs + jobs - 1) / jobs)) --seed "$seed" \
      --json "$work/$name.$seed.json" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
}
search parse "$parsed"
search emulate "$emulated"
python3 - "$work" "$result" "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)" <<'PYTHON'
import glob, json, sys
folder, result, commit = sys.argv[1:]
record = {"commit": commit, "targets": {}}
for name in ("parse", "emulate"):
    shards = [json.load(open(path)) for path in glob.glob(f"{folder}/{name}.*.json")]
    record["targets"][name] = {
        "mutated_files": sum(s["mutated"] for s in shards), "processes": len(shards),
        "originals": shards[0]["files"], "core_seconds": round(sum(s["seconds"] for s in shards), 1),
        "slowest_ms": max(s["slowest_ms"] for s in shards), "sanitizers": shards[0]["sanitizers"],
        "failures": sum(s["failures"] for s in shards)}
json.dump(record, open(result, "w"), indent=2)
open(result, "a").write("\n")
PYTHON
