# Keeps the tools with which a project looks through its own sources away from one of Firn's.
function(_firn_leave_unchecked target)
  set_target_properties(${target} PROPERTIES
    CXX_CLANG_TIDY "" CXX_CPPCHECK "" CXX_CPPLINT "" CXX_INCLUDE_WHAT_YOU_USE "")
endfunction()

# Sets `result` to the option that names the compiler's default standard, where that is enough for Firn: CMake leaves it out
# then, and clang-tidy, which has a default of its own, is not told. Where CMake names one, that comes behind and counts.
function(_firn_default_standard result)
  set(${result} "" PARENT_SCOPE)
  set(default "${CMAKE_CXX_STANDARD_DEFAULT}")
  set(kind STANDARD)
  if(CMAKE_CXX_EXTENSIONS_DEFAULT)
    set(kind EXTENSION)
  endif()
  if(default MATCHES "^(17|2[0-9])$" AND NOT CMAKE_CXX_FLAGS MATCHES "-std=")
    set(${result} "${CMAKE_CXX${default}_${kind}_COMPILE_OPTION}" PARENT_SCOPE)
  endif()
endfunction()

# firn_add_runtime(): the runtime library from its sources. In the source tree runtime/CMakeLists.txt calls it, from
# an installation FirnConfig.cmake does, so that the toolchain of the program that uses the runtime builds it.
function(firn_add_runtime source_dir include_dir)
  add_library(firn_runtime STATIC EXCLUDE_FROM_ALL "${source_dir}/cpu_features.cpp" "${source_dir}/refusal.cpp"
    "${source_dir}/saved_tensors.cpp" "${source_dir}/status.cpp" "${source_dir}/text.cpp" "${source_dir}/text_case.cpp"
    "${source_dir}/text_numbers.cpp" "${source_dir}/text_split.cpp" "${source_dir}/thread_pool.cpp")
  target_include_directories(firn_runtime PUBLIC "${include_dir}")
  target_compile_features(firn_runtime PUBLIC cxx_std_17)
  set_target_properties(firn_runtime PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
  if(NOT MSVC)
    target_compile_options(firn_runtime PRIVATE
      -fno-exceptions -fno-rtti -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables)
  endif()
  _firn_leave_unchecked(firn_runtime)
  _firn_default_standard(standard)
  target_compile_options(firn_runtime PRIVATE ${standard})
  # What models and programs link: the same library by its path. Programs in C keep C's linker, and install(EXPORT) of a
  # target that needs it names Firn::runtime, which find_package(Firn) brings.
  add_library(Firn::runtime INTERFACE IMPORTED GLOBAL)
  target_link_libraries(Firn::runtime INTERFACE "$<TARGET_FILE:firn_runtime>")
  target_include_directories(Firn::runtime INTERFACE "${include_dir}")
  add_dependencies(Firn::runtime firn_runtime)
  # Where the project knows no C++, its targets cannot be told a standard of it.
  get_directory_property(has_cxx DIRECTORY "${CMAKE_SOURCE_DIR}" DEFINITION CMAKE_CXX_COMPILER_LOADED)
  if(has_cxx)
    target_compile_features(Firn::runtime INTERFACE cxx_std_17)
    if(standard)
      set(is_checked "$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:$<TARGET_PROPERTY:CXX_CLANG_TIDY>>>")
      target_compile_options(Firn::runtime INTERFACE "$<${is_checked}:${standard}>")
    endif()
  endif()
endfunction()
