# What firn_add_library cannot do is refused when configuring, with a message that names the option and the way out;
# what does not fit a budget, when building.
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)

# Configures with these arguments and fails unless CMake stops with a message that holds `expected`.
function(expect_refusal arguments expected)  # further arguments go to CMake
  execute_process(
    COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S "${tests}/refusals" -B "${work}" "-DCMAKE_PREFIX_PATH=${prefix}"
      ${compilers} "-DARGUMENTS=${arguments}" ${second} ${ARGN}
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE failed)
  string(REGEX REPLACE "[ \n]+" " " flat "${output}")
  string(FIND "${flat}" "${expected}" found)
  if(NOT failed OR found EQUAL -1)
    message(FATAL_ERROR "'${arguments}': expected a refusal with '${expected}', got:\n${output}")
  endif()
endfunction()

set(start "firn_add_library(affine): ")
expect_refusal("CPU x86-64-v3 MULTIVERSION x86-64-v2 x86-64-v3"
  "${start}CPU is one, MULTIVERSION several: give one of the two")
expect_refusal("THREADS 0"
  "${start}THREADS 0: wanted how many threads run() makes use of at most")
expect_refusal("WEIGHTS file"
  "${start}WEIGHTS is 'file', wanted one of: embed, init")
foreach(dim IN ITEMS n n=1.. n=1..8: n=1|)
  expect_refusal("DIMS ${dim}"
    "${start}DIMS ${dim}: wanted name=value, for one object name=1..8, name=32..512:32 or name=1|4|8, or another dim: name=other")
endforeach()
foreach(values IN ITEMS n n=1..4 n=2,)
  expect_refusal("DIMS n=1..8 HOT ${values}"
    "${start}HOT ${values}: wanted name=value of a dim that varies, or name=value,name=value of several")
endforeach()
expect_refusal("CONST k"
  "${start}CONST k: wanted input=value, or input=file.npy or .pb")
expect_refusal("CONST k=nowhere.npy" "nowhere.npy' does not exist")
expect_refusal("QUANTIZE BUDGET 0.1"
  "${start}QUANTIZE BUDGET 0.1: wanted DATA <folder> [BUDGET <relative error>] [LINK <file> ...]")
foreach(words IN ITEMS "DATA ../models/affine_data BUDGET" "DATA ../models/affine_data LINK" "DATA" "DATA a b")
  expect_refusal("QUANTIZE ${words}" "${start}QUANTIZE ${words}: wanted DATA <folder> [BUDGET <relative error>] [LINK <file> ...]")
endforeach()
foreach(budget IN ITEMS lots 0 0.0e5 -1 1.5x . 5e)
  expect_refusal("QUANTIZE DATA ../models/affine_data BUDGET ${budget}"
    "${start}QUANTIZE BUDGET ${budget}: wanted a relative error, a number above 0 such as 0.05")
endforeach()
expect_refusal("QUANTIZE DATA ../models/affine_data LINK nowhere.c" "nowhere.c' does not exist")
expect_refusal("QUANTIZE DATA nowhere" "nowhere' is not a folder")
foreach(words IN ITEMS "LOSS mse" "OPTIMIZER sgd" "LOSS OPTIMIZER sgd")
  expect_refusal("TRAIN ${words}" "${start}TRAIN ${words}: wanted LOSS <name> [key=value ...] OPTIMIZER <name>")
endforeach()
expect_refusal("TRAIN LOSS mse OPTIMIZER sgd SPEED 1" "${start}TRAIN OPTIMIZER sgd SPEED: wanted key=value behind the name")
expect_refusal("TRAIN LOSS mse delta OPTIMIZER sgd" "${start}TRAIN LOSS mse delta: wanted key=value behind the name")
expect_refusal("TRAIN LOSS mse OPTIMIZER sgd TRAINABLE LAST" "${start}TRAIN TRAINABLE LAST: wanted a number of layers behind it")
expect_refusal("TRAIN LOSS mse OPTIMIZER sgd LORA rank=0 ON a" "${start}TRAIN LORA: wanted LORA rank=<n> ON <pattern> ...")
expect_refusal("TRAIN LOSS mse OPTIMIZER sgd FUNCTIONS nowhere.hlo" "nowhere.hlo' does not exist")
expect_refusal("TRAIN LOSS mse OPTIMIZER sgd QUANTIZE DATA ../models/affine_data"
  "${start}QUANTIZE and TRAIN exclude each other: integers are not trained")
expect_refusal("STATE past"
  "${start}STATE past: wanted past=present, an input and the output that it is in the next run")
expect_refusal("OPT fastest"
  "${start}OPT is 'fastest', wanted one of: speed, size, debug")
expect_refusal("MATH loose"
  "${start}MATH is 'loose', wanted one of: default, strict")
expect_refusal("PREBUILT_OBJECT a.o"
  "${start}PREBUILT_OBJECT and PREBUILT_HEADER belong together")

# Two classes that symbols and C functions cannot tell apart.
foreach(class IN ITEMS demo::Affine Demo::Affine demo_affine DemoAffine)
  set(second "-DSECOND=${class}")
  expect_refusal("" "firn_add_library(second): CLASS ${class} has the names of CLASS demo::Affine of the target 'affine' \
(in C they start with demo_affine_); give one of the two another class")
endforeach()
set(second -DSECOND=)

# What is missing is found before anything is built, unless a command of the project makes it, wherever that is written.
expect_refusal("" "nowhere.onnx' does not exist, and no command of this project has it as an output" -DMODEL=nowhere.onnx)
expect_refusal("" "DATA '${tests}/refusals/nowhere' does not exist" -UMODEL -DDATA=nowhere)
expect_refusal("PREBUILT_OBJECT nowhere.o PREBUILT_HEADER nowhere.h" "nowhere.o' does not exist" -UDATA)
configure("${tests}/refusals" "${work}/generated" ${compilers} "-DMODEL=${work}/generated/made.onnx" -DMAKES_MODEL=ON)
build("${work}/generated" --target affine)

# The budget's error comes from the compiler and names the largest contributors.
configure("${tests}/refusals" "${work}/budget" ${compilers} "-DARGUMENTS=RAM_BUDGET 8")
execute_process(COMMAND ${CMAKE_COMMAND} --build "${work}/budget" OUTPUT_VARIABLE output ERROR_VARIABLE output
  RESULT_VARIABLE failed)
if(NOT failed OR NOT output MATCHES "RAM use of [0-9,]+ B exceeds the budget of 8 B by [0-9,]+ B; largest: ")
  message(FATAL_ERROR "expected an exceeded budget, got:\n${output}")
endif()
