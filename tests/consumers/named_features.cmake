# Every feature that the help names gives an object, on its architecture's default CPU, for three networks of many kinds of
# arithmetic; names that are none, and targets without a code generator, are usage errors that leave no file.
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)
set(networks "${tests}/models/mixed_types.onnx" "${tests}/models/gru_sequence.onnx" "${tests}/models/affine.onnx")
set(files "${work}/files")

# Compiles with these options; sets `code`, `output` and the number of files written.
macro(compile)
  file(REMOVE_RECURSE "${files}")
  file(MAKE_DIRECTORY "${files}")
  execute_process(COMMAND "${FIRN_TOOL}" compile ${ARGN} -o "${files}/net"
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE code)
  file(GLOB written LIST_DIRECTORIES false "${files}/*" "${files}/.*")
  list(LENGTH written written)
endmacro()

execute_process(COMMAND "${FIRN_TOOL}" compile --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
set(runs 0)
foreach(pair IN ITEMS x86_64/x86_64-linux-gnu aarch64/aarch64-linux-gnu arm/arm-linux-gnueabihf
    riscv64/riscv64-linux-gnu)
  string(REGEX MATCH "^(.*)/(.*)$" pair "${pair}")
  set(triple "${CMAKE_MATCH_2}")
  if(NOT help MATCHES "\n  ${CMAKE_MATCH_1} +([-+][^\n]*)")
    message(FATAL_ERROR "the help names no features of ${CMAKE_MATCH_1}:\n${help}")
  endif()
  separate_arguments(features UNIX_COMMAND "${CMAKE_MATCH_1}")
  foreach(feature IN LISTS features)
    foreach(network IN LISTS networks)
      compile("${network}" --target ${triple} -mattr=${feature})
      math(EXPR runs "${runs} + 1")
      # A CPU may lack instructions for a network's types, which is said by name.
      if(code EQUAL 3 AND output MATCHES "computes in f(32|64), for which [^\n]* has no instructions" AND written EQUAL 0)
        continue()
      endif()
      if(NOT code EQUAL 0 OR NOT written EQUAL 3)
        message(FATAL_ERROR "${triple} ${feature} ${network}: exit code ${code}, ${written} files:\n${output}")
      endif()
    endforeach()
  endforeach()
endforeach()
message("${runs} compilations")

# Integers need nothing that the smallest CPUs lack, at any level.
foreach(triple IN ITEMS armv4t-none-eabi arm-linux-gnueabi thumbv6m-none-eabi thumbv7m-none-eabi thumbv8m.base-none-eabi
    armv7r-none-eabi riscv32-unknown-elf)
  foreach(level IN ITEMS -O0 -Os)
    compile("${tests}/models/integers.onnx" --target ${triple} ${level})
    if(NOT code EQUAL 0)
      message(FATAL_ERROR "${triple} ${level}: exit code ${code}:\n${output}")
    endif()
  endforeach()
endforeach()

list(GET networks 0 network)
foreach(pair IN ITEMS "-mattr=+avx512vni/avx512vnni" "-mattr=+sse4/sse4.1" "-mcpu=znver9/znver3" "-mattr=+avx2,-avx/contradicts"
    "--target=i686-linux-gnu/32-bit x86" "--target=mips-linux-gnu/x86_64-unknown-linux-gnu")
  string(REGEX MATCH "^(.*)/(.*)$" pair "${pair}")
  set(expected "${CMAKE_MATCH_2}")
  compile("${network}" "${CMAKE_MATCH_1}")
  string(FIND "${output}" "${expected}" found)
  if(NOT code EQUAL 2 OR NOT written EQUAL 0 OR found EQUAL -1)
    message(FATAL_ERROR "${pair}: exit code ${code}, ${written} files:\n${output}")
  endif()
endforeach()

# Sizes of code are seen, and budgets kept, in every format of objects.
foreach(triple IN ITEMS x86_64-linux-gnu x86_64-pc-windows-msvc x86_64-w64-mingw32 x86_64-apple-macosx
    aarch64-linux-gnu aarch64-pc-windows-msvc arm64-apple-macosx)
  compile("${network}" --target ${triple})
  if(NOT code EQUAL 0 OR NOT output MATCHES "code ([0-9.]+) kB")
    message(FATAL_ERROR "${triple}: no size of code in\n${output}")
  endif()
  compile("${network}" --target ${triple} --flash-budget=4K)
  if(code EQUAL 0 OR NOT written EQUAL 0 OR NOT output MATCHES "exceeds the budget of 4,096 B")
    message(FATAL_ERROR "${triple}: a budget of 4 KB was kept with exit code ${code}:\n${output}")
  endif()
endforeach()
