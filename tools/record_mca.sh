#!/bin/sh
# Records what llvm-mca predicts for the main tile loop of every gate kernel and CPU in tests/gates/mca.txt.
#   tools/record_mca.sh [BUILD_FOLDER]     default: build/release, with the target write_gate_loops built
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/release}
command -v llvm-mca-19 > /dev/null || { echo "skipped: llvm-mca-19 (package llvm-19) is not installed"; exit 0; }
writer=$build/tests/gates/write_gate_loops
[ -x "$writer" ] || { echo "error: $writer is not built (target write_gate_loops)" >&2; exit 1; }

loops=$(mktemp -d)
trap 'rm -rf "$loops"' EXIT
"$writer" "$loops"
iterations=200
{
  echo "# Main tile loops as llvm-mca-19 sees them, all loads hitting the first cache. Written by tools/record_mca.sh:"
  echo "#   llvm-mca-19 -mcpu=CPU -iterations=$iterations LOOP"
  echo "# kernel; CPU; algorithm; block reciprocal throughput; FMAs; cycles per FMA"
  for loop in "$loops"/*.s; do
    name=$(basename "$loop" .s)
    cpu=${name##*.}
    read -r _ fmas algorithm < "$loop"
    llvm-mca-19 -mcpu="$cpu" -iterations=$iterations "$loop" 2> /dev/null |
      awk -v kernel="$(echo "${name%.*}" | tr _ ' ')" -v cpu="$cpu" -v algorithm="$algorithm" -v fmas="$fmas" -v n=$iterations '
        /^Total Cycles:/ { cycles = $3 }
        /^Block RThroughput:/ { block = $3 }
        END { printf "%s; %s; %s; %s; %d; %.3f\n", kernel, cpu, algorithm, block, fmas, cycles / n / fmas }'
  done
} > "$loops/mca.txt"
mv "$loops/mca.txt" tests/gates/mca.txt
chmod 644 tests/gates/mca.txt
