# Cross builds: target, CPU and floats come from Debian's toolchains, the host's firn compiles the models, an emulator runs the
# tests, on the oldest machine that the toolchain means and on one that lacks what a model was compiled for.
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)

# Configures and builds a project for `processor` and runs its tests. Further arguments go to CMake.
function(test_on processor project)
  set(build "${work}/${processor} ${project}")
  configure("${tests}/${project}" "${build}" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=${processor}
    -DCMAKE_C_COMPILER=${CROSS_C} -DCMAKE_CXX_COMPILER=${CROSS_CXX}
    -DCMAKE_EXE_LINKER_FLAGS=-static "-DCMAKE_CROSSCOMPILING_EMULATOR=${emulator}" ${ARGN})
  build("${build}")
  run(${CMAKE_CTEST_COMMAND} --test-dir "${build}" --output-on-failure --no-tests=error)
endfunction()

set(missing "")
set(tested 0)
foreach(machine IN ITEMS
    # processor; triple; emulator; its oldest and newest CPU; CPUs for models: a small one, and one of which the oldest lacks
    # what comes last
    "aarch64|aarch64-linux-gnu|aarch64|cortex-a53|max|cortex-a53|neoverse-v1|FP16 arithmetic"
    "armv7l|arm-linux-gnueabihf|arm|cortex-a8|max|arm7tdmi|cortex-a7|VFPv4"
    "riscv64|riscv64-linux-gnu|riscv64|rv64|rv64|generic-rv64|sifive-u74|")
  string(REPLACE "|" ";" machine "${machine}")
  list(POP_FRONT machine processor triple architecture oldest newest small cpu lacking)
  find_program(CROSS_CXX ${triple}-g++ NO_CACHE)
  find_program(CROSS_C ${triple}-gcc NO_CACHE)
  find_program(EMULATOR NAMES qemu-${architecture} qemu-${architecture}-static NO_CACHE)
  if(NOT CROSS_CXX OR NOT CROSS_C OR NOT EMULATOR)
    list(APPEND missing ${triple})
  else()
    set(emulator "${EMULATOR}\\;-cpu\\;${oldest}")
    test_on(${processor} cross "-DDIGITS=${FIRN_SOURCE}/models/digits" -DSMALL_CPU=${small} -DNEWER_CPU=${cpu})
    set(expected ok)
    if(lacking)
      set(expected "the model needs ${lacking}, which this CPU or operating system lacks")
    endif()
    run("${EMULATOR}" -cpu ${oldest} "${work}/${processor} cross/cpu_check" "${expected}")
    run("${EMULATOR}" -cpu ${newest} "${work}/${processor} cross/cpu_check")
    math(EXPR tested "${tested} + 1")
    if(processor STREQUAL "aarch64")
      test_on(${processor} features)
      if(FIRN_TEST_DATA)
        test_on(${processor} networks "-DNETWORKS=${FIRN_TEST_DATA}/models/mnist_8" -DOPT=speed)
      endif()
    endif()
  endif()
  unset(CROSS_CXX)
  unset(CROSS_C)
  unset(EMULATOR)
endforeach()
if(missing)
  message("not installed: cross compilers or emulators for ${missing}")
endif()
if(tested EQUAL 0)
  message("SKIPPED: no cross compiler with an emulator")
endif()
