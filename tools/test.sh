#!/bin/sh
# Installs what is missing, builds Firn in build/release and runs every test but those labelled 'long'. Can be run again;
# only what changed is rebuilt. FIRN_TEST_DATA=DIR points to conformance cases and real networks (default: ../shared when it
# exists).
set -eu
cd "$(dirname "$0")/.."
. tools/packages.sh

install_packages python3-numpy libtbb-dev g++-aarch64-linux-gnu qemu-user strace valgrind \
  gcc-arm-none-eabi libstdc++-arm-none-eabi-newlib qemu-system-arm g++-arm-linux-gnueabihf g++-riscv64-linux-gnu \
  g++-mingw-w64-x86-64-posix mandoc zsh fish clang clang-19 clang-tidy
firn_say "configuring build/release"
cmake --preset release -DFIRN_BUILD_TESTS=ON ${FIRN_TEST_DATA:+-DFIRN_TEST_DATA="$FIRN_TEST_DATA"} > build-configure.log 2>&1 ||
  { cat build-configure.log >&2; firn_fail "configuring failed"; }
rm -f build-configure.log
firn_say "building (the first time about half an hour on 2 cores)"
cmake --build build/release -j "$(nproc)" || firn_fail "the build failed"
firn_say "testing (about half an hour on 2 cores)"
ctest --test-dir build/release -LE long --no-tests=error --output-on-failure -j "$(nproc)" --timeout 1800 || firn_fail "some tests failed"
firn_say "all tests passed"
