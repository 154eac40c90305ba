#!/bin/sh
# Prints the nanoseconds of one call of a model of four additions: as the class of an object, and as a model that was
# compiled in process.
# usage: call.sh BUILD
# BUILD: where Firn is built
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat > "$scratch/sum.hlo" <<'END'
module @sum {
  func @main(%x: f32[4], %y: f32[4]) -> (f32[4]) {
    %z = add %x, %y : f32[4]
    return %z
  }
}
END
"$build/tools/firn/firn" compile "$scratch/sum.hlo" -mcpu=x86-64-v3 --class=bench::Sum -o "$scratch/sum" -q
"${CXX:-c++}" -std=c++17 -O2 "-I$scratch" "-I$root/include" "$root/tools/bench/call.cpp" "$scratch/sum.o" \
  "$build/runtime/libfirn_runtime.a" "-L$build/tools/jit" -lfirn "-Wl,-rpath,$build/tools/jit" -o "$scratch/call"
"$scratch/call" "$scratch/sum.hlo"
