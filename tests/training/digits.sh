#!/bin/sh
# Compiles models/digits with a training step, builds digits.cpp with it, and runs that.
#   digits.sh FIRN CXX RUNTIME SOURCE
set -e
firn=$1 cxx=$2 runtime=$3 source=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$firn" compile "$source/models/digits/model.onnx" -q -o "$folder/digits" --class Digits \
  --train loss=softmax_cross_entropy,optimizer=adam
"$cxx" -std=c++17 -O2 -Wall -Wextra -Werror -I "$source/include" -I "$source/models" -I "$folder" "$source/tests/training/digits.cpp" \
  "$folder/digits.o" "$runtime" -pthread -o "$folder/program"
"$folder/program"
