#!/bin/sh
# Installs what is missing, builds Firn, and compiles a digit recogniser into a small C++ program that draws and reads
# digits in the terminal. Can be run again.
set -eu
cd "$(dirname "$0")/.."
. tools/packages.sh

firn_say "1 of 5: install the Debian packages that Firn needs and this machine lacks"
install_packages
build=build/release

firn_say "2 of 5: build the compiler in $build (the first time about 20 minutes on 2 cores, 3 on 16)"
cmake --preset release > /dev/null || firn_fail "configuring firn failed"
cmake --build $build -j "$(nproc)" --target firn firn_runtime || firn_fail "building firn failed"

firn_say "3 of 5: build a program with CMake (tools/demo/CMakeLists.txt): firn compiles models/digits/model.onnx, g++ the rest"
cmake -G Ninja -S tools/demo -B build/demo -DCMAKE_BUILD_TYPE=Release -DFIRN_EXECUTABLE="$PWD/$build/tools/firn/firn" \
  > /dev/null || firn_fail "configuring the digits program failed"
cmake --build build/demo || firn_fail "building the digits program failed"

firn_say "4 of 5: run the program build/demo/digits: it draws digits, and the network reads them"
build/demo/digits || firn_fail "the digits program failed"

firn_say "5 of 5: sizes of the model's object, and of the runtime parts that the program may link"
size "$(find build/demo -name 'digits_model*.o' -not -path '*CMakeFiles/digits.dir*' | head -n 1)"
size "$(find build/demo -name 'libfirn_runtime.a' | head -n 1)"

firn_say "done. To use Firn in your programs, install it:"
cat << END
  cmake --install $build --prefix ~/firn
  export PATH=~/firn/bin:\$PATH CMAKE_PREFIX_PATH=~/firn
Then read the guide:
  models/README.md         a first network in five minutes, example programs, networks from PyTorch and others
  cmake/README.md          building with CMake, other CPUs and machines
  include/firn/README.md   the generated class: tensors, memory, threads, errors
tools/README.md is the reference of the command firn. build/release/tools/firn/firn --help works now.
END
