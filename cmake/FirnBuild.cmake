# How the compiler's targets are compiled: firn_add_component() makes the static library of one compiler folder.

add_library(firn_compile_options INTERFACE)
target_compile_features(firn_compile_options INTERFACE cxx_std_20)
target_compile_options(firn_compile_options INTERFACE -fno-rtti -fvisibility=hidden -fvisibility-inlines-hidden
  $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(firn_compile_options INTERFACE -Wall -Wextra -Werror)
else()
  # What a project wants of its own sources, warnings as errors say, is no reason for its build to fail at these.
  add_compile_options(-w)
  foreach(tool IN ITEMS CLANG_TIDY CPPCHECK CPPLINT INCLUDE_WHAT_YOU_USE)
    set(CMAKE_CXX_${tool} "")
  endforeach()
endif()
# Files have names of their own in anonymous namespaces.
set(CMAKE_UNITY_BUILD OFF)
# Components become part of libfirn.so.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Assertions guard the compiler's own invariants in every build: a wrong object is worse than a slow compile.
string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
if(FIRN_SANITIZE)
  # GCC warns of uninitialised members and mismatched deletes where sanitizers keep it from following constructors.
  target_compile_options(firn_compile_options INTERFACE -fsanitize=${FIRN_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-mismatched-new-delete>")
  target_link_options(firn_compile_options INTERFACE -fsanitize=${FIRN_SANITIZE})
endif()
if(FIRN_FUZZ)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer)
  check_cxx_source_compiles("extern \"C\" int LLVMFuzzerTestOneInput(const unsigned char*, decltype(sizeof 0)) { return 0; }"
                            FIRN_HAS_LIBFUZZER)
  unset(CMAKE_REQUIRED_FLAGS)
  if(FIRN_HAS_LIBFUZZER)
    # Warnings are for the compilers that Firn is developed with.
    target_compile_options(firn_compile_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=vptr
                           -fno-sanitize-recover=undefined -Wno-error)
    target_link_options(firn_compile_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined)
  else()
    message(STATUS "FIRN_FUZZ: ${CMAKE_CXX_COMPILER} has no libFuzzer; the fuzz targets only replay their corpus")
  endif()
endif()

# firn_precompile(<target> HEADERS <paths...>) compiles these and the standard headers once for all files of the target;
# firn_precompile(<target> FROM <other target>) uses those of another target. Files include what they need all the same:
# FIRN_PCH=OFF compiles them without. Names in angle brackets keep the text the same in every folder, so that ccache knows it.
function(firn_precompile target)
  cmake_parse_arguments(arg "" "FROM" "HEADERS" ${ARGN})
  if(NOT FIRN_PCH)
    return()
  endif()
  if(arg_FROM)
    target_precompile_headers(${target} REUSE_FROM ${arg_FROM})
  else()
    set(headers algorithm array bit climits cmath complex cstddef cstdint cstring functional iterator limits list map memory
      numeric optional set span sstream string string_view utility variant vector ${arg_HEADERS})
    list(TRANSFORM headers REPLACE "(.+)" "<\\1>")
    target_precompile_headers(${target} PRIVATE ${headers})
  endif()
  # ccache sees with -fpch-preprocess which header is used; time stamps of Clang's would differ from folder to folder. A
  # precompiled header of GCC forgets the pragmas with which <string> turns warnings off.
  target_compile_options(${target} PRIVATE
    "$<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess;-Wno-error=invalid-pch;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>"
    "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endfunction()

# firn_add_component(<folder> SOURCES <files...> DEPENDS <folders...> [LIBRARIES <external targets...>]
#                    [PRECOMPILE <headers...> | PRECOMPILED_BY <folder>])
# <folder> is relative to compiler/; its target is firn_<last path element>. DEPENDS repeats the edges that the
# folder table allows; a missing edge fails to link. Without PRECOMPILE the standard headers are those of support.
function(firn_add_component folder)
  cmake_parse_arguments(arg "" "PRECOMPILED_BY" "SOURCES;DEPENDS;LIBRARIES;PRECOMPILE" ${ARGN})
  get_filename_component(name ${folder} NAME)
  add_library(firn_${name} STATIC ${arg_SOURCES})
  target_include_directories(firn_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  list(TRANSFORM arg_DEPENDS PREPEND firn_)
  target_link_libraries(firn_${name} PUBLIC firn_compile_options ${arg_DEPENDS} PRIVATE ${arg_LIBRARIES})
  if(arg_PRECOMPILE OR name STREQUAL "support")
    firn_precompile(firn_${name} HEADERS ${arg_PRECOMPILE})
  elseif(arg_PRECOMPILED_BY)
    firn_precompile(firn_${name} FROM firn_${arg_PRECOMPILED_BY})
  elseif(NOT "firn_llvm" IN_LIST arg_LIBRARIES) # whose macros precompiled headers do not know
    firn_precompile(firn_${name} FROM firn_support)
  endif()
endfunction()
