#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU: builds, runs all tests on it, runs compute-sanitizer, measures, and writes JSON.
#
# usage: scripts/device.sh [build] [test] [sanitize] [compare] [bench] [peers]     (default: build test sanitize bench)
#   test      every test program in parts side by side, the C interface, the examples
#   sanitize  compute-sanitizer's four tools over the tests that launch kernels
#   compare   compute-sanitizer beside the emulator on right and on mutated kernels (scripts/sanitizer.py)
#   bench     BENCHES, in their order
#   peers     the Python package beside PyTorch, Triton and other packages that are there: PEERS, in their order
# Where python3 has nanobind, the Python package is built, and tested on what else python3 has (PyTorch, CuPy, JAX).
# Needs no network; installs nothing; changes no setting of the GPU. From the environment:
#   DEVICE         the device, default cuda:0
#   OUT            where JSON and logs go, default bench/results
#   BUILD          build folder, default build/device
#   CMAKE_OPTIONS  further options, e.g. -DXXHASH_INCLUDE_DIR=/opt/xxhash
#   COMMIT         names the measured commit where there is no git repository
#   ARCHIVE        packs OUT into this .tgz after every phase, so that a run that is cut off leaves what it has
#   BUILD_S TEST_S SANITIZE_S COMPARE_S BENCH_S PEERS_S   time limits of the phases in seconds (400 300 240 120 300 900)
#   SHARDS         parts of each test program, and processes side by side, default the number of processors
#   BENCHES        what bench measures, default all: operators maths gemm compile_time and the names of bench/*_bench
#   BENCH_FILTER   benchmarks of those programs (a regular expression, default all)
#   PEERS          families of bench/peers, default call_cost norms quantisation activations moe copies kda

set -uo pipefail
cd "$(dirname "$0")/.."
DEVICE=${DEVICE:-cuda:0}
OUT=${OUT:-bench/results}
BUILD=${BUILD:-build/device}
PATH="$PATH:/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer:/opt/nvidia/nsight-compute"
export PATH
mkdir -p "$OUT" "$BUILD"
[ -z "${ARCHIVE:-}" ] || mkdir -p "$(dirname "$ARCHIVE")"
summary="" status=0

# phase NAME LIMIT COMMAND...: runs it, keeps its output in a log, and adds a line to the summary.
phase() {
  local name=$1 limit=$2 begin=$SECONDS rc
  shift 2
  echo "=== $name (at most $limit s)"
  export DEADLINE=$(($(date +%s) + limit))
  "$@" 2>&1 | tee "$OUT/$name.log"
  rc=${PIPESTATUS[0]}
  local word=right
  [ $rc = 0 ] || { word="FAILED ($rc)"; status=1; }
  summary="$summary$(printf '%-9s %-13s %4d s  %s' "$name" "$word" $((SECONDS - begin)) "$(note "$name")")
"
  [ -z "${ARCHIVE:-}" ] || tar -czf "$ARCHIVE" -C "$OUT" .
}

# One telling line of a phase's log.
note() {
  case $1 in
    test) grep -E '^[0-9]+ passed' "$OUT/test.log" | tail -n 1 ;;
    sanitize) grep -c '^clean: ' "$OUT/sanitize.log" | sed 's/$/ runs clean/' ;;
    compare | bench | peers) grep -c '^written: ' "$OUT/$1.log" | sed 's/$/ files written/' ;;
  esac
}

left() {
  local now
  now=$(date +%s)
  echo $((DEADLINE > now ? DEADLINE - now : 1))
}

build() {
  local generator="Unix Makefiles" python=OFF
  ! command -v ninja >/dev/null || generator=Ninja
  ! python3 -c 'import nanobind' 2>/dev/null || python=ON
  # shellcheck disable=SC2086  # a list of options
  cmake -G "$generator" -S . -B "$BUILD" -DCMAKE_BUILD_TYPE=Release "-DTILEWRIGHT_PYTHON=$python" ${CMAKE_OPTIONS:-} &&
    timeout "$(left)" cmake --build "$BUILD" -j "$(nproc)"
}

# One part of a test program; its results are the file NAME.INDEX.xml.
run_part() {
  local name
  name=$(basename "$1").$2
  GTEST_SHARD_INDEX=$2 GTEST_TOTAL_SHARDS=$SHARDS TILEWRIGHT_TEST_DEVICE=$DEVICE timeout "$(left)" \
    "$1" --gtest_brief=1 "--gtest_output=xml:$TESTS/$name.xml" >"$TESTS/$name.log" 2>&1 && return
  grep -E -B 12 '^\[  FAILED  \] [A-Z]' "$TESTS/$name.log"
  [ -f "$TESTS/$name.xml" ] || echo "did not end: $name, at $(tail -n 1 "$TESTS/$name.log")"
}

# A process a part, and not a test, since each makes a context. Then the C interface and the examples; number 14 says so where
# there is no second GPU.
run_tests() {
  local bad=0 program part example
  export SHARDS=${SHARDS:-$(nproc)} TESTS=$BUILD/tests OUT DEVICE
  export -f run_part left
  rm -rf "$TESTS" && mkdir -p "$TESTS"
  for program in "$BUILD"/*_test; do
    "$program" --gtest_list_tests >/dev/null 2>&1 || continue
    for ((part = 0; part < SHARDS; ++part)); do echo "$program $part"; done
  done >"$TESTS/parts"
  xargs -P "$SHARDS" -L 1 bash -c 'run_part "$0" "$1"' <"$TESTS/parts" >"$TESTS/wrong"
  cat "$TESTS/wrong"
  [ ! -s "$TESTS/wrong" ] || bad=1
  cat "$TESTS"/*.xml | awk '
    match($0, /<testsuites tests="[0-9]+" failures="[0-9]+"/) { split($0, part, "\""); tests += part[2]; failed += part[4] }
    /result="skipped"/ { ++skipped }
    END { printf "%d passed, %d failed, %d skipped\n", tests - failed - skipped, failed, skipped }'
  "$BUILD/c_interface_test" "$DEVICE" || bad=1
  for example in "$BUILD"/example_[0-9]*; do
    timeout "$(left)" "$example" "$DEVICE" || bad=1
  done
  return $bad
}

# compute-sanitizer's four tools over the tests that launch kernels; says so where it cannot run. A graph that outlives its
# kernel's handle ends compute-sanitizer 2025.3 itself with a fault, so that test is left out; it passes without the tool.
sanitize() {
  if ! command -v compute-sanitizer >/dev/null; then
    echo "compute-sanitizer is not installed (package cuda-sanitizer): not run"
    return 0
  fi
  local bad=0 tool program rc
  for tool in memcheck racecheck synccheck initcheck; do
    for program in kernels_test runtime_test; do
      [ -x "$BUILD/$program" ] || continue
      if [ "$(left)" -le 5 ]; then
        echo "no time left for $tool $program"
        continue
      fi
      rc=0
      TILEWRIGHT_TEST_DEVICE=$DEVICE timeout "$(left)" compute-sanitizer --tool "$tool" --report-api-errors no --error-exitcode 99 \
        "$BUILD/$program" --gtest_brief=1 \
        "--gtest_filter=${SANITIZE_FILTER:--*AGraphKeepsItsKernelLoaded}" >"$OUT/$tool.$program.log" 2>&1 || rc=$?
      if grep -q -i 'device not supported\|failed to initialize\|unable to' "$OUT/$tool.$program.log"; then
        echo "cannot run here: $tool $program: $(grep -i -m 1 'not supported\|failed to\|unable to' "$OUT/$tool.$program.log")"
      elif [ $rc = 124 ]; then
        echo "out of time: $tool $program"
      elif [ $rc = 0 ]; then
        echo "clean: $tool $program"
      else
        echo "FINDINGS: $tool $program ($rc)"
        tail -n 30 "$OUT/$tool.$program.log"
        bad=1
      fi
    done
  done
  return $bad
}

commit() { echo "${COMMIT:-$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)}"; }
gpu() { nvidia-smi --query-gpu="$1" --format=csv,noheader -i "${DEVICE#cuda:}" 2>/dev/null | head -n 1; }

# measure NAME COMMAND...: a program that writes NAME.json in OUT, in place of what was there only if it ends well.
measure() {
  local name=$1
  shift
  if timeout "$(left)" "$@"; then
    sed -i '/"host_name":/d;/"executable":/d' "$OUT/$name.new"
    mv "$OUT/$name.new" "$OUT/$name.json" && echo "written: $OUT/$name.json"
  else
    rm -f "$OUT/$name.new"
    echo "FAILED: $name"
    return 1
  fi
}

# Operators by the program itself, the rest by benchmark programs: JSON files that say where they were measured.
bench() {
  local assembler commit device driver name programs bad=0
  assembler=$(ptxas --version 2>/dev/null | sed -n 's/.*release [0-9.]*, V/ptxas /p')
  commit=$(commit)
  device=$(gpu name) driver=$(gpu driver_version)
  programs=$(cd "$BUILD/bench" && ls -- *_bench | sed 's/_bench$//' | grep -vx gemm)
  for name in ${BENCHES:-operators maths gemm compile_time $programs}; do
    case $name in
      operators)
        # shellcheck disable=SC2016  # the inner shell's
        measure operators sh -c '"$0" bench --device "$1" --commit "$2" --json >"$3"' \
          "$BUILD/tilewright" "$DEVICE" "$commit" "$OUT/operators.new" || bad=1
        ;;
      # Every f32 number and 2^30 pairs through each maths function.
      maths) measure maths "$BUILD/maths_sweep" --device "$DEVICE" --commit "$commit" --json "$OUT/maths.new" || bad=1 ;;
      # The GEMMs of the lessons beside cuBLASLt.
      gemm) measure gemm "$BUILD/bench/gemm_bench" --device "$DEVICE" --commit "$commit" --json "$OUT/gemm.new" || bad=1 ;;
      compile_time) COMMIT=$commit OUT=$OUT timeout "$(left)" scripts/compile_time.sh || bad=1 ;;
      *)
        TILEWRIGHT_TEST_DEVICE=$DEVICE measure "$name" "$BUILD/bench/${name}_bench" --benchmark_filter="${BENCH_FILTER:-.}" \
          --benchmark_out="$OUT/$name.new" --benchmark_out_format=json \
          --benchmark_context=device="${device:-none}",driver="${driver:-none}",assembler="${assembler:-none}",commit="$commit" || bad=1
        ;;
    esac
  done
  return $bad
}

# The Python package beside its peers, in processes of python3's.
peers() {
  local bad=0 commit family file workers
  export PYTHONPATH="$BUILD/python${PYTHONPATH:+:$PYTHONPATH}"
  python3 -c 'import tilewright, torch, triton' || { echo "not run: python3 lacks the package, PyTorch or Triton"; return 0; }
  commit=$(commit)
  workers=$(($(nproc) > 2 ? $(nproc) - 2 : 1))
  for family in ${PEERS:-call_cost norms quantisation activations moe copies kda}; do
    file=$OUT/${family}_peers.json
    if [ "$family" = call_cost ]; then
      measure call_cost python3 bench/peers/call_cost.py --commit "$commit" --json "$OUT/call_cost.new" || bad=1
      continue
    fi
    timeout "$(left)" python3 "bench/peers/$family.py" --workers "$workers" --commit "$commit" --json "$file" &&
      { [ ! -f "$file" ] || echo "written: $file"; } || { echo "FAILED: $family"; bad=1; }
  done
  return $bad
}

phases=${*:-build test sanitize bench}
for name in $phases; do
  case $name in
    build) phase build "${BUILD_S:-400}" build ;;
    test) phase test "${TEST_S:-300}" run_tests ;;
    sanitize) phase sanitize "${SANITIZE_S:-240}" sanitize ;;
    compare) phase compare "${COMPARE_S:-120}" measure sanitizer scripts/sanitizer.py --program "$BUILD/tilewright" \
      --commit "$(commit)" --json "$OUT/sanitizer.new" ;;
    bench) phase bench "${BENCH_S:-300}" bench ;;
    peers) phase peers "${PEERS_S:-900}" peers ;;
    *) echo "no phase '$name'; there are build, test, sanitize, compare, bench, peers" >&2 && exit 2 ;;
  esac
done
echo "=== summary: $(gpu name), driver $(gpu driver_version), device $DEVICE"
printf '%s' "$summary"
exit $status
