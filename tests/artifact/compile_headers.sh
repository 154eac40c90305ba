#!/bin/sh
# Compiles each generated header alone under every compiler at hand: as C++17 and C++20 without exceptions and RTTI, and
# its C part as C11, all warnings as errors.  usage: compile_headers.sh GENERATED INCLUDE
set -eu
generated=$1
include=$2
warnings="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Werror"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tried=0
seen=
for cc in gcc gcc-12 clang clang-19 aarch64-linux-gnu-gcc; do
  cxx=$(echo "$cc" | sed 's/clang/clang++/; s/gcc/g++/')
  path=$(readlink -f "$(command -v "$cxx")" 2>/dev/null) || continue
  test -n "$path" || continue
  case " $seen " in *" $path "*) continue ;; esac
  seen="$seen $path"
  tried=$((tried + 1))
  for header in "$generated"/bare.h "$generated"/digits.h "$generated"/everything.h "$generated"/in_place.h \
    "$generated"/prepared.h "$generated"/trained.h "$generated"/trained_prepared.h "$generated"/varying.h; do
    echo "#include \"$header\"" >"$scratch/alone.cpp"
    for extra in owned tfcompile; do echo "#include <firn/$extra.h>" >>"$scratch/alone.cpp"; done
    for standard in c++17 c++20; do
      "$cxx" -std=$standard $warnings -Wold-style-cast -fno-exceptions -fno-rtti "-I$include" -c "$scratch/alone.cpp" -o "$scratch/alone.o"
    done
    cp "$header" "$scratch/alone.h"
    echo '#include "alone.h"' >"$scratch/alone.c"
    "$cc" -std=c11 $warnings "-I$include" -c "$scratch/alone.c" -o "$scratch/alone.o"
  done
done
echo "$tried compilers accept the headers"
test "$tried" -gt 0
