#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what a build needs on Debian 12 or Ubuntu 24.04, where it is missing; sourced by demo.sh and test.sh.
#
# usage: scripts/setup.sh           installs, and says which assembler is there
#        . scripts/setup.sh         the same, and puts the assembler on PATH
#        install_packages NAME...   (once sourced) installs further packages

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

BUILD_PACKAGES="g++ cmake ninja-build libxxhash-dev libcli11-dev nlohmann-json3-dev libzip-dev libgtest-dev libbenchmark-dev"

# Runs a command as root: directly, or with sudo.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Installs the named Debian packages that are not installed yet.
install_packages() {
  local missing=""
  if ! command -v apt-get >/dev/null; then
    echo "setup: no apt-get here; make sure that the equivalents of these are installed: $*"
    return 0
  fi
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    echo "setup: error: these packages are missing and need root to install:$missing" >&2
    echo "setup: run as root: apt-get install$missing" >&2
    return 1
  fi
  echo "setup: installing$missing"
  # shellcheck disable=SC2086  # a list of names
  as_root apt-get update -qq &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null || {
    echo "setup: error: apt-get could not install$missing" >&2
    return 1
  }
}

# The folder of a ptxas: on PATH, in the usual toolkit folders, or in .venv; nothing if there is none.
assembler_folder() {
  local found
  found=$(command -v ptxas) || found=$(ls -1 /usr/local/cuda*/bin/ptxas .venv/lib/python3*/site-packages/nvidia/*/bin/ptxas \
    2>/dev/null | head -n 1)
  [ -z "$found" ] || (cd "$(dirname "$found")" && pwd)
}

# Fetches NVIDIA's assembler into .venv where no toolkit has it. Without it, everything runs in the emulator.
install_assembler() {
  [ -z "$(assembler_folder)" ] || return 0
  [ "$(uname -m)" = x86_64 ] || [ "$(uname -m)" = aarch64 ] || return 0
  echo "setup: no ptxas here; fetching it into .venv"
  install_packages python3-venv ca-certificates &&
    python3 -m venv .venv &&
    timeout 180 .venv/bin/pip install -q --no-deps --disable-pip-version-check --retries 1 --timeout 20 \
      "nvidia-cuda-nvcc==13.0.*" && return 0
  echo "setup: the assembler could not be fetched; going on without: tests that need it are skipped and counted"
}

# shellcheck disable=SC2086  # a list of names
install_packages $BUILD_PACKAGES || exit 1
install_assembler
if [ -n "$(assembler_folder)" ]; then
  PATH="$PATH:$(assembler_folder)"
  export PATH
  echo "setup: assembler $(ptxas --version | sed -n 's/.*release [0-9.]*, V/ptxas /p') in $(assembler_folder)"
else
  echo "setup: no assembler; kernels run in the emulator only"
fi
