#!/bin/sh
# Objects with tile matrices in programs: refused or granted by the runtime's check, granted by one that stands for a CPU
# with AMX and interprets its instructions, shared by threads, and beside code for a CPU without.
# usage: use_tiles.sh FIRN SOURCE_ROOT RUNTIME.a CXX
set -eu
firn=$1 root=$2 runtime=$3 cxx=$4
if ! "$firn" compile "$root/tests/artifact/programs/tiles.hlo" -mcpu=native --emit=asm -o - 2>/dev/null | grep -q zmm; then
  echo "this CPU has no vectors of 512 bits: skipped"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
build() { # PROGRAM FLAGS...
  program=$1
  shift
  "$cxx" -std=c++17 -O1 -Wall -Wextra -I. "-I$root" "-I$root/include" "$@" "$root/tests/artifact/programs/use_tiles.cpp" \
    "$root/tests/codegen/tile_interpreter.cpp" tiles.o "$runtime" -pthread -o "$program"
}
for options in "" "--threads 2"; do
  # shellcheck disable=SC2086
  "$firn" compile "$root/tests/artifact/programs/tiles.hlo" -mcpu=x86-64-v4 \
    -mattr=+amx-tile,+amx-int8,+amx-bf16 --class=test::Tiles -o tiles -q $options
  build checked
  ./checked
  build granted -DGRANTED
  ./granted ${options#--threads}
done
"$firn" compile "$root/tests/artifact/programs/tiles.hlo" --multiversion=x86-64-v4+amx-tile+amx-int8+amx-bf16,x86-64-v3 \
  --class=test::Tiles -o tiles -q
build several
./several
