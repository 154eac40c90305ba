#!/bin/sh
# Prints for each point of a range of dims a row: ms of the object for that shape alone, of the object for the range, the
# median and the middle half of the ratios of neighbouring blocks of runs, the largest error between both, and the bytes
# of their code.
# usage: freedom.sh BUILD SECONDS FOLDER RANGES POINT...
#        freedom.sh build/release 2 minilm_any_length "batch=1..8 seq=1..512" "batch=1 seq=16" "batch=8 seq=128"
# BUILD: where Firn is built; FLAGS: options of both, by default -mcpu=native. A point gives every dim a value.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd) seconds=$2 folder=$3 ranges=$4
shift 4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# compile NAME DIM...
compile() {
  name=$1
  shift
  options=
  for dim in "$@"; do options="$options --dim $dim"; done
  # shellcheck disable=SC2086 # several options
  "$build/tools/firn/firn" compile "$folder/model.onnx" ${FLAGS:--mcpu=native} $options --class="$name::Model" \
    -o "$scratch/$name" -q
}
code_bytes() { size -A "$scratch/$1.o" | awk '$1 ~ /^\.text/ {sum += $2} END {print sum}'; }

echo "| dims | one shape ms | range ms | ratio | middle half | error | code of one shape | of the range | ratio |"
echo "|---|---|---|---|---|---|---|---|---|"
# shellcheck disable=SC2086 # several dims
compile ranged $ranges
for point in "$@"; do
  # shellcheck disable=SC2086
  compile fixed $point
  "${CXX:-c++}" -std=c++17 -O2 "-I$scratch" "-I$root/include" "$root/tools/bench/freedom.cpp" "$scratch/fixed.o" \
    "$scratch/ranged.o" "$build/runtime/libfirn_runtime.a" -o "$scratch/freedom"
  # shellcheck disable=SC2086
  "$scratch/freedom" "$point" "$seconds" $point
  fixed=$(code_bytes fixed) ranged=$(code_bytes ranged)
  awk "BEGIN {printf \" %d | %d | %.2f |\\n\", $fixed, $ranged, $ranged / $fixed}"
done
