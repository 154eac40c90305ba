#!/bin/sh
# refused.sh FIRN MODEL OPERATOR...: compiling ends with exit code 3 and names every operator.
set -u
firn=$1 model=$2
shift 2
out=$("$firn" compile "$model" -o /nonexistent/never 2>&1)
code=$?
[ $code = 3 ] || { echo "exit code $code, wanted 3: $out"; exit 1; }
for operator in "$@"; do
  case $out in *"$operator"*) ;; *) echo "'$operator' is not named: $out"; exit 1 ;; esac
done
