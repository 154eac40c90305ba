# A cross build: the triple comes from the compiler, the host's firn compiles the models, an emulator runs the tests.
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)
find_program(CROSS_CXX aarch64-linux-gnu-g++)
find_program(CROSS_C aarch64-linux-gnu-gcc)
find_program(EMULATOR NAMES qemu-aarch64 qemu-aarch64-static)
if(NOT CROSS_CXX OR NOT CROSS_C OR NOT EMULATOR)
  message("SKIPPED: no cross compiler or no emulator for aarch64")
  return()
endif()
configure("${tests}/features" "${work}" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64
  -DCMAKE_C_COMPILER=${CROSS_C} -DCMAKE_CXX_COMPILER=${CROSS_CXX}
  -DCMAKE_EXE_LINKER_FLAGS=-static -DCMAKE_CROSSCOMPILING_EMULATOR=${EMULATOR})
build("${work}")
run(${CMAKE_CTEST_COMMAND} --test-dir "${work}" --output-on-failure --no-tests=error)
