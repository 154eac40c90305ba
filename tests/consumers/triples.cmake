# Target and CPU that firn_add_library derives from toolchains.
cmake_minimum_required(VERSION 3.25)
include(${FIRN_SOURCE}/cmake/FirnModel.cmake)

function(expect_options cpu expected)
  _firn_target_options("${cpu}" options)
  if(NOT options STREQUAL "${expected}")
    message(FATAL_ERROR "${CMAKE_CXX_COMPILER_TARGET} ${CMAKE_CXX_FLAGS}: got '${options}', expected '${expected}'")
  endif()
endfunction()

# GCC for microcontrollers: architecture and float ABI come from the flags.
set(CMAKE_CXX_COMPILER_TARGET arm-none-eabi)
set(CMAKE_CXX_FLAGS "-O2 -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16")
expect_options("" "--target;thumbv7em-none-eabihf;-mcpu=cortex-m4")
expect_options(cortex-m7 "--target;thumbv7em-none-eabihf;-mcpu=cortex-m7")
set(CMAKE_CXX_FLAGS "-mcpu=cortex-m0plus -mfloat-abi=soft")
expect_options("" "--target;thumbv6m-none-eabi;-mcpu=cortex-m0plus")
set(CMAKE_CXX_FLAGS "-mcpu=cortex-m33+nodsp -mfloat-abi=hard")
expect_options("" "--target;thumbv8m.main-none-eabihf;-mcpu=cortex-m33")
# Clang is told the whole triple.
set(CMAKE_CXX_COMPILER_TARGET thumbv7em-none-eabihf)
set(CMAKE_CXX_FLAGS "-mcpu=cortex-m4")
expect_options("" "--target;thumbv7em-none-eabihf;-mcpu=cortex-m4")

# Elsewhere the triple says it all, and flags for the program do not choose the model's CPU.
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_CXX_FLAGS "-mcpu=neoverse-n1")
expect_options("" "--target;aarch64-linux-gnu")
expect_options(cortex-a72 "--target;aarch64-linux-gnu;-mcpu=cortex-a72")
set(CMAKE_CXX_COMPILER_TARGET "")
set(CMAKE_CXX_COMPILER_ID MSVC)
set(CMAKE_C_COMPILER_ID MSVC)
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR AMD64)
expect_options("" "--target;x86_64-pc-windows-msvc")
