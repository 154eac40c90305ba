# firn_add_runtime(): the runtime library from its sources. In the source tree runtime/CMakeLists.txt calls it, from
# an installation FirnConfig.cmake does, so that the toolchain of the program that uses the runtime builds it.
function(firn_add_runtime source_dir include_dir)
  add_library(firn_runtime STATIC EXCLUDE_FROM_ALL "${source_dir}/cpu_features.cpp" "${source_dir}/status.cpp")
  add_library(Firn::runtime ALIAS firn_runtime)
  target_include_directories(firn_runtime PUBLIC "$<BUILD_INTERFACE:${include_dir}>")
  target_compile_features(firn_runtime PUBLIC cxx_std_17)
  set_target_properties(firn_runtime PROPERTIES POSITION_INDEPENDENT_CODE ON)
  if(NOT MSVC)
    target_compile_options(firn_runtime PRIVATE
      -Wall -Wextra -fno-exceptions -fno-rtti -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables)
  endif()
endfunction()
