# shellcheck shell=bash
# What scripts/quickstart and scripts/test share; sourced by them. Leaves the shell in the root of the repository.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Ninja if it is there; CMake falls back to its default otherwise. An existing build folder keeps its generator.
use_ninja() {
  if [ -z "${CMAKE_GENERATOR:-}" ] && command -v ninja > /dev/null; then
    export CMAKE_GENERATOR=Ninja
  fi
}

step() {
  printf '\n==> %s\n' "$*"
}

fail() {
  printf 'error: %s\n' "$1" >&2
  printf 'hint: %s\n' "$2" >&2
  exit 1
}

# missing_packages EXTRA...: prints the Debian packages that are still needed, those beyond what the build needs included.
# Tools are looked for as programs, libraries as packages.
missing_packages() {
  command -v c++ > /dev/null || echo g++
  command -v cmake > /dev/null || echo cmake
  command -v make > /dev/null || command -v ninja > /dev/null || echo ninja-build
  command -v pkg-config > /dev/null || echo pkg-config
  command -v python3 > /dev/null || echo python3
  python3 -m pip --version > /dev/null 2>&1 || echo python3-pip
  local package
  for package in nlohmann-json3-dev libcli11-dev libpcre2-dev libutf8proc-dev libtomlplusplus-dev libssl-dev libedit-dev libcpp-httplib-dev libcurl4-openssl-dev doctest-dev "$@"; do
    if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null)" != installed ]; then
      echo "$package"
    fi
  done
}

# install_packages EXTRA...: installs the Debian packages that are missing; needs no root when none is.
install_packages() {
  if ! command -v dpkg-query > /dev/null; then
    step "Not a Debian system: CMake will say which libraries are missing"
    return
  fi
  local missing
  mapfile -t missing < <(missing_packages "$@")
  if [ ${#missing[@]} -eq 0 ]; then
    step "All Debian packages are there"
    return
  fi
  step "Installing Debian packages: ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! sudo -n true 2> /dev/null; then
      fail "packages are missing and this user cannot install them" "as root: apt-get install ${missing[*]}"
    fi
    as_root=(sudo -n)
  fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update
  "${apt[@]}" install --yes --no-install-recommends "${missing[@]}" < /dev/null
}

# What a script adds to the configuration of its preset.
cmake_options=()

# build PRESET TARGET...: configures and builds targets of a preset.
build() {
  local preset=$1
  shift
  use_ninja
  cmake --preset "$preset" "${cmake_options[@]}"
  cmake --build --preset "$preset" --parallel "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" --target "$@"
}
