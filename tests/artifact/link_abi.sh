#!/bin/sh
# One model's header in programs of C11, C++17 and C++20, which run and agree; and what linkers say of an object or a
# runtime of another ABI: the number that is wanted stands in the name that is not found.
# usage: link_abi.sh FIRN MODEL.onnx INCLUDE RUNTIME.a CC CXX
set -eu
firn=$1 model=$2 include=$3 runtime=$4 cc=$5 cxx=$6
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
fail() {
  echo "$*" >&2
  exit 1
}

"$firn" compile "$model" --class=abi::Model -o model -q
cat >use.cpp <<'PROGRAM'
#include "model.h"
#include <cstdio>

int main() {
  static abi::Model::Arena arena;
  abi::Model model(arena);
  for (int i = 0; i < 28; ++i) model.image()(0, 0, i, i) = 1.0f;
  if (!model.run()) return 1;
  for (int i = 0; i < 10; ++i) std::printf("%.9g\n", static_cast<double>(model.probabilities()(0, i)));
}
PROGRAM
cat >use.c <<'PROGRAM'
#include "model.h"
#include <stdio.h>

int main(void) {
  static unsigned char arena[ABI_MODEL_ARENA_BYTES];
  abi_model model;
  if (abi_model_init(&model, arena, sizeof arena)) return 1;
  for (int i = 0; i < 28; ++i) abi_model_image(&model)[29 * i] = 1.0f;
  if (abi_model_run(&model)) return 1;
  for (int i = 0; i < 10; ++i) printf("%.9g\n", (double)abi_model_probabilities(&model)[i]);
  return 0;
}
PROGRAM

"$cc" -std=c11 -Wall -Wextra -Wpedantic -Werror "-I$include" use.c model.o "$runtime" -o in_c11
"$cxx" -std=c++17 -Wall -Wextra -Wpedantic -Werror "-I$include" use.cpp model.o "$runtime" -o in_cpp17
"$cxx" -std=c++20 -Wall -Wextra -Wpedantic -Werror "-I$include" use.cpp model.o "$runtime" -o in_cpp20
for program in in_c11 in_cpp17 in_cpp20; do
  "./$program" >$program.txt || fail "$program says $?"
  test "$(wc -l <$program.txt)" -eq 10 || fail "$program printed $(wc -l <$program.txt) numbers"
  cmp in_c11.txt $program.txt || fail "$program computes other numbers than in_c11"
done

# Of one ABI before: an object, then a runtime.
number=$(sed -n 's/^#define FIRN_ABI \([0-9]*\)$/\1/p' "$include/firn/abi.h")
old=$((number - 1))
objcopy=$(command -v objcopy || command -v llvm-objcopy-19) || fail "no objcopy"
rename() { # FROM TO FILE OUTPUT
  nm "$3" 2>/dev/null | sed -n "s/.* \([A-Za-z0-9_]*$1[A-Za-z0-9_]*\)$/\1/p" | sort -u |
    sed "s/\(.*\)$1\(.*\)/\1$1\2 \1$2\2/" >renamed
  test -s renamed || fail "$3 has no symbol with $1"
  "$objcopy" --redefine-syms=renamed "$3" "$4"
}
refused() { # NAME COMMAND...
  name=$1
  shift
  if "$@" -o refused 2>message; then fail "linked: $*"; fi
  grep "undefined.*$name" message >/dev/null || { cat message >&2; fail "the linker does not name $name"; }
}
rename "_abi${number}_" "_abi${old}_" model.o old.o
rename "firn_rt${number}_" "firn_rt${old}_" "$runtime" old.a
refused "abi_model_run_abi${number}_" "$cc" -std=c11 "-I$include" use.c old.o "$runtime"
refused "abi_model_run_abi${number}_" "$cxx" -std=c++17 "-I$include" use.cpp old.o "$runtime"
refused "firn_rt${number}_check_cpu" "$cxx" -std=c++17 "-I$include" use.cpp model.o old.a
echo "three standards agree; objects and runtimes of ABI $old are refused by name"
