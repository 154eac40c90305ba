# Two models with one class name and one interface in one program: each computes with its own weights, shared libraries
# export what their author does and nothing of the models, and mistakes fail to compile or link.
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)
set(models "${work}/models")
foreach(name IN ITEMS first second)
  file(COPY "${tests}/models/affine.onnx" "${tests}/models/affine.weights" DESTINATION "${models}/${name}")
endforeach()
# The second has weights of zero, which lie in external data: the model files are equal.
file(SIZE "${models}/second/affine.weights" size)
execute_process(COMMAND head -c ${size} /dev/zero OUTPUT_FILE "${models}/second/affine.weights" COMMAND_ERROR_IS_FATAL ANY)
foreach(name IN ITEMS first second)
  run("${FIRN_TOOL}" compile "${models}/${name}/affine.onnx" -o "${models}/${name}/affine" --class demo::Affine --quiet)
endforeach()

find_program(NM nm REQUIRED)
# Builds with these compilers, runs, and looks at what the shared libraries export.
function(check build)
  configure("${tests}/same_class" "${build}" ${ARGN} "-DMODELS=${models}")
  build("${build}")
  run("${build}/one_program")
  run("${build}/two_libraries")
  foreach(name IN ITEMS shared_first shared_second)
    execute_process(COMMAND ${NM} -D --defined-only --format=just-symbols "${build}/lib${name}.so"
      OUTPUT_VARIABLE symbols OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    if(NOT symbols STREQUAL "${name}_score")
      message(FATAL_ERROR "${build}/lib${name}.so exports:\n${symbols}")
    endif()
  endforeach()
endfunction()
check("${work}/build" ${compilers})
find_program(CLANG clang)
find_program(CLANGXX clang++)
if(CLANG AND CLANGXX)
  check("${work}/clang" -DCMAKE_C_COMPILER=${CLANG} -DCMAKE_CXX_COMPILER=${CLANGXX})
endif()

# Fails unless building the target stops with a message that matches `expected`.
function(expect_failure target expected)
  execute_process(COMMAND ${CMAKE_COMMAND} --build "${work}/build" --target ${target}
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE failed)
  if(NOT failed OR NOT output MATCHES "${expected}")
    message(FATAL_ERROR "${target}: expected a failure with '${expected}', got:\n${output}")
  endif()
endfunction()
expect_failure(stale "demo_affine_run_abi2_")
expect_failure(both_cpp "ambiguous")
expect_failure(both_c "two models have C functions that start with demo_affine_")
