#!/bin/sh
# Compiles the network of write_digits.py with a training step, for one CPU or several, and runs programs that use the
# classes and functions of that step.
#   trainer.sh FIRN CXX CC PYTHON RUNTIME SOURCE [options of firn compile]
set -e
firn=$1 cxx=$2 cc=$3 python=$4 runtime=$5 source=$6
shift 6
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -B "$source/tests/training/write_digits.py" "$folder/digits.onnx"
"$firn" compile "$folder/digits.onnx" -q -o "$folder/digits" --class Digits --dim batch=1..6 --threads 5 \
  --train loss=softmax_cross_entropy,optimizer=adam,clip_norm=2 "$@"
warnings="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"
"$cxx" -std=c++17 -O2 $warnings -fno-exceptions -fno-rtti -I "$source/include" -I "$source/models" -I "$folder" \
  "$source/tests/training/use_trainer.cpp" "$folder/digits.o" "$runtime" -pthread -o "$folder/in_cpp"
"$folder/in_cpp"
"$cxx" -std=c++17 -O3 -ffast-math -I "$source/include" -I "$source/models" -I "$folder" \
  "$source/tests/training/use_trainer.cpp" "$folder/digits.o" "$runtime" -pthread -o "$folder/fast_in_cpp"
"$folder/fast_in_cpp"
"$cc" -std=c11 -O2 $warnings -Wstrict-prototypes -I "$source/include" -I "$source/models" -I "$folder" \
  "$source/tests/training/use_trainer_in_c.c" "$folder/digits.o" "$runtime" -lstdc++ -pthread -o "$folder/in_c"
"$folder/in_c"
