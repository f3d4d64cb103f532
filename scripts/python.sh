#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Python package: makes a virtual environment, builds, and runs the tests on NumPy (on PyTorch too where it is there).
#
# usage: scripts/python.sh           the extension module in the build folder, beside what is built there already
#        scripts/python.sh --wheel   the wheel, as `pip install .` builds it, tested as it is installed
# From the environment:
#   VENV   the virtual environment, default .venv/python; it is made where it is missing
#   BUILD  build folder of the library, default build

set -euo pipefail
cd "$(dirname "$0")/.."
VENV=${VENV:-.venv/python}
BUILD=${BUILD:-build}

if [ ! -x "$VENV/bin/python" ]; then
  python3 -m venv "$VENV"
  "$VENV/bin/pip" install -q --disable-pip-version-check "nanobind>=2.2" "scikit-build-core>=0.10" ninja numpy ml_dtypes pytest
fi
python=$(cd "$VENV/bin" && pwd)/python

if [ "${1:-}" = --wheel ]; then
  "$python" -m pip wheel -q --no-build-isolation --no-deps -w "$BUILD/wheel" .
  "$python" -m pip install -q --force-reinstall --no-deps "$BUILD"/wheel/tilewright-*.whl
  ls -l "$BUILD"/wheel/tilewright-*.whl
  "$python" -m pytest -q python/tests
  exit
fi
cmake -S . -B "$BUILD" -G Ninja -DTILEWRIGHT_PYTHON=ON "-DPython_EXECUTABLE=$python" >/dev/null
cmake --build "$BUILD" --target python_package
PYTHONPATH="$BUILD/python" "$python" -m pytest -q python/tests
