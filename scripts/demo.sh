#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets everything up, builds the program, and runs two kernels on tensors of a file: on a GPU if there is one.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/setup.sh

cmake --preset release
cmake --build --preset release --target tilewright
run() {
  echo
  echo "\$ tilewright $*"
  build/tilewright "$@"
}
mkdir -p build/demo
run doctor
run run tile_copy --in examples/data/tile_copy.safetensors --out build/demo/tile_copy.safetensors --check
run run rms_norm --in examples/data/rms_norm.safetensors --set eps=1e-6 --out build/demo/rms_norm.safetensors --check
echo
echo "results: build/demo/tile_copy.safetensors, build/demo/rms_norm.safetensors"
