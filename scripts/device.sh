#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU: builds, runs all tests on it, runs compute-sanitizer, measures, and writes JSON.
#
# usage: scripts/device.sh [build] [test] [sanitize] [bench] [peers]     (default: all but peers, in this order)
# Where python3 has nanobind, the Python package is built, and tested on what else python3 has (PyTorch, CuPy, JAX); peers measures
# it beside PyTorch, Triton and other packages that are there.
# Needs no network; installs nothing; changes no setting of the GPU. From the environment:
#   DEVICE         the device, default cuda:0
#   OUT            where JSON and logs go, default bench/results
#   BUILD          build folder, default build/device
#   CMAKE_OPTIONS  further options, e.g. -DXXHASH_INCLUDE_DIR=/opt/xxhash
#   COMMIT         names the measured commit where there is no git repository
#   BUILD_S TEST_S SANITIZE_S BENCH_S PEERS_S   time limits of the phases in seconds (400 300 240 300 900)
#   BENCH_FILTER   benchmarks to run (a regular expression, default all)

set -uo pipefail
cd "$(dirname "$0")/.."
DEVICE=${DEVICE:-cuda:0}
OUT=${OUT:-bench/results}
BUILD=${BUILD:-build/device}
PATH="$PATH:/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer:/opt/nvidia/nsight-compute"
export PATH
mkdir -p "$OUT" "$BUILD"
summary="" status=0

# phase NAME LIMIT COMMAND...: runs it, keeps its output in a log, and adds a line to the summary.
phase() {
  local name=$1 limit=$2 begin=$SECONDS rc
  shift 2
  echo "=== $name (at most $limit s)"
  export DEADLINE=$((SECONDS + limit))
  "$@" 2>&1 | tee "$OUT/$name.log"
  rc=${PIPESTATUS[0]}
  local word=right
  [ $rc = 0 ] || { word="FAILED ($rc)"; status=1; }
  summary="$summary$(printf '%-9s %-13s %4d s  %s' "$name" "$word" $((SECONDS - begin)) "$(note "$name")")
"
}

# One telling line of a phase's log.
note() {
  case $1 in
    test) grep -E 'tests passed|No tests' "$OUT/test.log" | tail -n 1 ;;
    sanitize) grep -c '^clean: ' "$OUT/sanitize.log" | sed 's/$/ runs clean/' ;;
    bench | peers) grep -c '^written: ' "$OUT/$1.log" | sed 's/$/ files written/' ;;
  esac
}

left() { echo $((DEADLINE > SECONDS ? DEADLINE - SECONDS : 1)); }

build() {
  local generator="Unix Makefiles" python=OFF
  ! command -v ninja >/dev/null || generator=Ninja
  ! python3 -c 'import nanobind' 2>/dev/null || python=ON
  # shellcheck disable=SC2086  # a list of options
  cmake -G "$generator" -S . -B "$BUILD" -DCMAKE_BUILD_TYPE=Release "-DTILEWRIGHT_PYTHON=$python" ${CMAKE_OPTIONS:-} &&
    timeout "$(left)" cmake --build "$BUILD" -j "$(nproc)"
}

# Every test, those of the operators and the runtime on the device; then the examples there.
run_tests() {
  local bad=0 example
  TILEWRIGHT_TEST_DEVICE=$DEVICE timeout "$(left)" \
    ctest --test-dir "$BUILD" -j 4 --output-on-failure --timeout 120 -LE structure --output-junit tests.xml || bad=1
  # The tests ran the examples in the emulator. Number 14 says so where there is no second GPU.
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

gpu() { nvidia-smi --query-gpu="$1" --format=csv,noheader -i "${DEVICE#cuda:}" 2>/dev/null | head -n 1; }

# Operators by the program itself, the rest by benchmark programs: JSON files that say where they were measured.
bench() {
  local assembler commit device driver program file bad=0
  assembler=$(ptxas --version 2>/dev/null | sed -n 's/.*release [0-9.]*, V/ptxas /p')
  commit=${COMMIT:-$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)}
  device=$(gpu name) driver=$(gpu driver_version)
  if [ -x "$BUILD/tilewright" ] && timeout "$(left)" "$BUILD/tilewright" bench --device "$DEVICE" --commit "$commit" --json \
    >"$OUT/operators.new"; then
    mv "$OUT/operators.new" "$OUT/operators.json" && echo "written: $OUT/operators.json"
  else
    echo "FAILED: tilewright bench"
    rm -f "$OUT/operators.new"
    bad=1
  fi
  for program in "$BUILD"/bench/*_bench; do
    [ -x "$program" ] || continue
    case $program in */gemm_bench) continue ;; esac  # below: it has options of its own
    file=$OUT/$(basename "$program" _bench).json
    TILEWRIGHT_TEST_DEVICE=$DEVICE timeout "$(left)" "$program" --benchmark_filter="${BENCH_FILTER:-.}" \
      --benchmark_out="$file" --benchmark_out_format=json \
      --benchmark_context=device="${device:-none}",driver="${driver:-none}",assembler="${assembler:-none}",commit="$commit" &&
      sed -i '/"host_name":/d;/"executable":/d' "$file" &&
      echo "written: $file" || { echo "FAILED: $program"; bad=1; }
  done
  # Every f32 number and 2^30 pairs through each maths function, and the GEMMs of the lessons beside cuBLASLt.
  for program in "maths_sweep maths" "bench/gemm_bench gemm"; do
    file=$OUT/${program#* }.json
    [ -x "$BUILD/${program% *}" ] || continue
    timeout "$(left)" "$BUILD/${program% *}" --device "$DEVICE" --commit "$commit" --json "$file" && echo "written: $file" ||
      { echo "FAILED: ${program% *}"; bad=1; }
  done
  [ ! -f examples/01_vector_add.cpp ] || COMMIT=$commit OUT=$OUT timeout "$(left)" scripts/compile_time.sh || bad=1
  return $bad
}

# The Python package beside its peers, in processes of python3's.
peers() {
  local bad=0 commit family file workers
  export PYTHONPATH="$BUILD/python${PYTHONPATH:+:$PYTHONPATH}"
  python3 -c 'import tilewright, torch, triton' || { echo "not run: python3 lacks the package, PyTorch or Triton"; return 0; }
  commit=${COMMIT:-$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)}
  workers=$(($(nproc) > 2 ? $(nproc) - 2 : 1))
  timeout "$(left)" python3 bench/peers/call_cost.py --commit "$commit" --json "$OUT/call_cost.json" &&
    echo "written: $OUT/call_cost.json" || bad=1
  for family in norms quantisation activations moe copies kda; do
    file=$OUT/${family}_peers.json
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
    bench) phase bench "${BENCH_S:-300}" bench ;;
    peers) phase peers "${PEERS_S:-900}" peers ;;
    *) echo "no phase '$name'; there are build, test, sanitize, bench, peers" >&2 && exit 2 ;;
  esac
done
echo "=== summary: $(gpu name), driver $(gpu driver_version), device $DEVICE"
printf '%s' "$summary"
exit $status
