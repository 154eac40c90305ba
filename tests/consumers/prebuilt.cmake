# A prebuilt object and header need no compiler; an object of another compilation does not link with the header.
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)
set(models "${tests}/models")
set(files "${work}/files")
file(MAKE_DIRECTORY "${files}")
run("${FIRN_TOOL}" compile "${models}/affine.onnx" -o "${files}/affine" --class demo::Affine)
# An installation without the compiler.
file(COPY "${prefix}/" DESTINATION "${work}/bare")
file(REMOVE "${work}/bare/bin/firn")
set(prefix "${work}/bare")
configure("${tests}/prebuilt" "${work}/build" ${compilers} "-DPREBUILT=${files}")
build("${work}/build")
run("${work}/build/app")

run("${FIRN_TOOL}" compile "${models}/doubler.onnx" -o "${work}/stale" --class demo::Affine
  --name features=serving_default_x:0 --name scores=class)
file(RENAME "${work}/stale.o" "${files}/affine.o")
execute_process(COMMAND ${CMAKE_COMMAND} --build "${work}/build" OUTPUT_VARIABLE output ERROR_VARIABLE output
  RESULT_VARIABLE failed)
if(NOT failed OR NOT output MATCHES "demo_affine_run_abi2_")
  message(FATAL_ERROR "a stale object linked:\n${output}")
endif()
