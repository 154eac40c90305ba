#!/bin/sh
# Prints for each network FOLDER/model.onnx a row: ms on one thread, ms on two, their ratio, that over what two pinned
# copies reach together, and what the object for two takes on one thread over the one for one.
# usage: speed_up.sh BUILD SECONDS FOLDER...    BUILD: where Firn is built; at least two cores, the first two are used
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd) seconds=$2
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo "| network | one thread ms | two threads ms | gain | of two copies | object for two on one |"
echo "|---|---|---|---|---|---|"
for folder in "$@"; do
  for threads in one:1 two:2; do
    "$build/tools/firn/firn" compile "$folder/model.onnx" -mcpu=native --threads "${threads#*:}" \
      --class="${threads%:*}::Model" -o "$scratch/${threads%:*}" -q
  done
  "${CXX:-c++}" -std=c++17 -O2 "-I$scratch" "-I$root/include" "$root/tools/bench/speed_up.cpp" "$scratch/one.o" \
    "$scratch/two.o" "$build/runtime/libfirn_runtime.a" -pthread -o "$scratch/speed_up"
  "$scratch/speed_up" "$(basename "$folder")" "$seconds"
done
