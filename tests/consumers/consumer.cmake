# What the scripts of consumer tests share: configure, build and run a project in a fresh folder.
cmake_minimum_required(VERSION 3.25)

set(prefix "${SCRATCH}/in stall")
set(tests "${CMAKE_CURRENT_LIST_DIR}")
set(work "${SCRATCH}/${NAME} build")  # a space in every path

# Configures the project in `source` into `build`; further arguments go to CMake.
function(configure source build)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S "${source}" -B "${build}" -DCMAKE_BUILD_TYPE=Release
      "-DCMAKE_PREFIX_PATH=${prefix}" ${ARGN}
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "configuring ${source} failed:\n${output}")
  endif()
endfunction()

function(build build)
  execute_process(COMMAND ${CMAKE_COMMAND} --build "${build}" --parallel 2 ${ARGN}
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "building in ${build} failed:\n${output}")
  endif()
endfunction()

function(run)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE failed)
  message("${output}")
  if(failed)
    message(FATAL_ERROR "failed with ${failed}: ${ARGN}")
  endif()
endfunction()

# Passes the host's compilers on.
set(compilers -DCMAKE_C_COMPILER=${C_COMPILER} -DCMAKE_CXX_COMPILER=${CXX_COMPILER})

file(REMOVE_RECURSE "${work}")
file(MAKE_DIRECTORY "${work}")
