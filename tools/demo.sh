#!/bin/sh
# Installs what is missing, builds Firn, and compiles a digit recogniser into a small C++ program that draws and reads
# digits in the terminal. Can be run again.
set -eu
cd "$(dirname "$0")/.."
. tools/packages.sh

install_packages
build=build/release
firn_say "building firn (some minutes the first time)"
cmake --preset release > /dev/null || firn_fail "configuring firn failed"
cmake --build $build -j "$(nproc)" --target firn firn_runtime || firn_fail "building firn failed"

firn_say "building the digits program: tools/demo/CMakeLists.txt"
cmake -G Ninja -S tools/demo -B build/demo -DCMAKE_BUILD_TYPE=Release -DFIRN_EXECUTABLE="$PWD/$build/tools/firn/firn" \
  > /dev/null || firn_fail "configuring the digits program failed"
cmake --build build/demo || firn_fail "building the digits program failed"

build/demo/digits || firn_fail "the digits program failed"
firn_say "sizes: the model's object, and the runtime parts that the program may link"
size "$(find build/demo -name 'digits_model*.o' -not -path '*CMakeFiles/digits.dir*' | head -n 1)"
size "$(find build/demo -name 'libfirn_runtime.a' | head -n 1)"
