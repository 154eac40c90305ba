#!/bin/sh
# A shared model under every kind of executor: Firn's pool, a program's own threads, OpenMP, and oneTBB where it is
# installed.  usage: lend_executors.sh FIRN PROGRAMS INCLUDE RUNTIME.a CXX [SECONDS]
set -eu
firn=$1 programs=$2 include=$3 runtime=$4 cxx=$5 seconds=${6:-1}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
"$firn" compile "$programs/shared.hlo" --threads 8 --class=test::Shared -o shared -q --explain >explained
if ! grep -q ", tasks 8" explained; then
  echo "no kernel is shared among eight threads" >&2
  exit 1
fi
"$firn" compile "$programs/shared.hlo" --threads 8 -o shared_kernels --emit=kernel -q
if ! grep -q "concurrent {" shared_kernels; then
  echo "no kernels run at the same time" >&2
  exit 1
fi
libraries=
if echo '#include <oneapi/tbb/parallel_for.h>' | "$cxx" -std=c++17 -x c++ -fsyntax-only - 2>/dev/null; then
  libraries="-DWITH_TBB -ltbb"
else
  echo "oneTBB is not installed: without it"
fi
# shellcheck disable=SC2086
"$cxx" -std=c++17 -O1 -Wall -Wextra -fopenmp -I. "-I$include" "$programs/lend_executors.cpp" shared.o "$runtime" $libraries \
  -pthread -o lend_executors
./lend_executors "$seconds"
