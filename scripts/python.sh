#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Python package: makes a virtual environment, builds, and runs the tests on NumPy (on PyTorch too where it is there).
#
# usage: scripts/python.sh           the extension module in the build folder, beside what is built there already, and the
#                                    operators for TVM-FFI where apache-tvm-ffi can be fetched
#        scripts/python.sh --wheel   the wheel, as `pip install .` builds it, tested as it is installed
# Ends with 77 where the packages that it needs cannot be had. From the environment:
#   VENV   the virtual environment, default .venv/python; it is made where it is missing
#   BUILD  build folder of the library, default build; the results of the tests are in BUILD/python.xml

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/setup.sh
VENV=${VENV:-.venv/python}
BUILD=${BUILD:-build}
python=$VENV/bin/python

has_headers() {
  python3 -c 'import ensurepip, os, sysconfig; raise SystemExit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' 2>/dev/null
}

# Makes the virtual environment; what it needs is fetched once.
set_up() {
  has_headers || install_packages python3-venv python3-dev
  [ -x "$python" ] || python3 -m venv "$VENV" || return 1
  "$python" -c 'import ml_dtypes, nanobind, numpy, pytest, scikit_build_core' 2>/dev/null ||
    "$python" -m pip install -q --disable-pip-version-check --retries 1 --timeout 20 \
      "cmake>=3.26" ml_dtypes "nanobind>=2.2" numpy ninja pytest "scikit-build-core>=0.10"
}

# The operators as functions of TVM-FFI.
test_tvm_ffi() {
  "$python" -c 'import tvm_ffi' 2>/dev/null ||
    "$python" -m pip install -q --disable-pip-version-check --retries 1 --timeout 20 "apache-tvm-ffi>=0.1.15" ||
    { echo "python: TVM-FFI skipped: apache-tvm-ffi could not be fetched"; return 0; }
  cmake -S . -B "$BUILD" -G Ninja "-DTVM_FFI_CONFIG=$(dirname "$python")/tvm-ffi-config" >/dev/null
  cmake --build "$BUILD" --target tilewright_tvm_ffi
  "$python" test/c/tvm_ffi_test.py "$BUILD/libtilewright_tvm_ffi.so"
}

set_up || { echo "python: skipped: its packages could not be fetched"; exit 77; }
mkdir -p "$BUILD"
python=$(cd "$VENV/bin" && pwd)/python
if [ "${1:-}" = --wheel ]; then
  PATH="$(dirname "$python"):$PATH" "$python" -m pip wheel -q --no-build-isolation --no-deps -w "$BUILD/wheel" .
  "$python" -m pip install -q --force-reinstall --no-deps "$BUILD"/wheel/tilewright-*.whl
  ls -l "$BUILD"/wheel/tilewright-*.whl
else
  cmake -S . -B "$BUILD" -G Ninja -DTILEWRIGHT_PYTHON=ON "-DPython_EXECUTABLE=$python" >/dev/null
  cmake --build "$BUILD" --target python_package
  export PYTHONPATH="$BUILD/python"
  test_tvm_ffi
fi
"$python" -m pytest -q --junitxml="$BUILD/python.xml" python/tests
