#!/bin/sh
# A model of narrow element types, compiled for one CPU, for several, by size and with weights made at start, and a C++17
# program that uses it.  usage: use_narrow.sh FIRN PROGRAMS INCLUDE RUNTIME.a CXX
set -eu
firn=$1 programs=$2 include=$3 runtime=$4 cxx=$5
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
for options in "" "-Os" "-mcpu=x86-64-v2" "--multiversion=x86-64-v2,x86-64-v3" "--threads 4"; do
  # shellcheck disable=SC2086
  "$firn" compile "$programs/narrow.hlo" --class=test::Narrow -o narrow -q $options
  "$cxx" -std=c++17 -O1 -Wall -Wextra -Wpedantic -Wconversion -Werror -fno-exceptions -fno-rtti -I. "-I$include" \
    "$programs/use_narrow.cpp" narrow.o "$runtime" -pthread -o use_narrow
  ./use_narrow
done
