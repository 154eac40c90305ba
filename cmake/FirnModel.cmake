# firn_add_library() and firn_add_golden_test(): models as libraries of a CMake project. The same file serves
# find_package(Firn), add_subdirectory() and FetchContent.
#
#   firn_add_library(<target> MODEL <file.onnx> CLASS <ns::Name>
#     [NAMES new=old ...] [CUSTOM_OP domain:name=symbol[:bytes] ...] [DIMS name=value|lo..hi|lo..hi:multiple|a|b ...] [CONST input=value|file ...] [STATE past=present ...] [EXTERNAL name ...]
#     [TARGET <triple>] [CPU <name>|MULTIVERSION <name> ...] [OPT speed|size|debug] [MATH default|strict] [PRECISION f32|bf16] [WEIGHTS embed|init] [THREADS <n>]
#     [QUANTIZE DATA <folder> [BUDGET <relative error>]] [FLASH_BUDGET 64K] [RAM_BUDGET 20K] [PREBUILT_OBJECT <o> PREBUILT_HEADER <h>] [OPTIONS ...])
#   firn_add_golden_test(<test> LIBRARY <target> DATA <folder> [TOLERANCE 1e-5])
#
# The library's header is "<target>.h". The compiler is the executable FIRN_EXECUTABLE if that is set, else the target
# Firn::firn, which the package imports and the source tree builds. TARGET and CPU are what the project's toolchain compiles
# for, unless given.
cmake_policy(PUSH)
cmake_policy(VERSION 3.25)

include("${CMAKE_CURRENT_LIST_DIR}/FirnTarget.cmake")

# Ends the configuration with a message that starts with the call's name.
function(_firn_refuse call text)
  message(FATAL_ERROR "${call}: ${text}")
endfunction()

# Stops at an option whose value is none of the choices.
function(_firn_check_choice call option value)
  if(value AND NOT value IN_LIST ARGN)
    list(JOIN ARGN ", " choices)
    _firn_refuse("${call}" "${option} is '${value}', wanted one of: ${choices}")
  endif()
endfunction()

# Sets `result` to the compiler as a command, which may be a generator expression.
function(_firn_compiler call result)
  if(FIRN_EXECUTABLE)
    set(${result} "${FIRN_EXECUTABLE}" PARENT_SCOPE)
    return()
  endif()
  if(NOT TARGET Firn::firn)
    _firn_refuse("${call}" "there is no firn compiler here; set FIRN_EXECUTABLE to a firn that runs on this machine, \
or give PREBUILT_OBJECT and PREBUILT_HEADER")
  endif()
  get_target_property(is_imported Firn::firn IMPORTED)
  if(CMAKE_CROSSCOMPILING AND NOT is_imported)
    _firn_refuse("${call}" "a cross build cannot run the firn that it builds; set FIRN_EXECUTABLE to one for this \
machine and FIRN_BUILD_COMPILER=OFF")
  endif()
  set(${result} "$<TARGET_FILE:Firn::firn>" PARENT_SCOPE)
endfunction()

# Refuses what this version of Firn cannot do, before anything is built.
function(_firn_check_supported call threads weights states dims constants)
  foreach(state IN LISTS states)
    if(NOT state MATCHES "^.+=.+$")
      _firn_refuse("${call}" "STATE ${state}: wanted past=present, an input and the output that it is in the next run")
    endif()
  endforeach()
  foreach(constant IN LISTS constants)
    if(NOT constant MATCHES "^.+=.+$")
      _firn_refuse("${call}" "CONST ${constant}: wanted input=value, or input=file.npy or .pb")
    endif()
  endforeach()
  if(NOT "${threads}" STREQUAL "" AND NOT threads MATCHES "^[1-9][0-9]*$")
    _firn_refuse("${call}" "THREADS ${threads}: wanted how many threads run() makes use of at most")
  endif()
  if(weights STREQUAL "file")
    _firn_refuse("${call}" "WEIGHTS file is not supported by this version of Firn; use WEIGHTS embed or init")
  endif()
  foreach(dim IN LISTS dims)
    if(NOT dim MATCHES "^.+=([0-9]+|[0-9]+\\.\\.[0-9]+(:[0-9]+)?|[0-9]+(\\|[0-9]+)+)$")
      _firn_refuse("${call}" "DIMS ${dim}: wanted name=value, or for one object name=1..8, name=32..512:32 or name=1|4|8")
    endif()
  endforeach()
endfunction()

# Refuses a file or folder that is neither there nor made by the build. Looks when everything is configured: the command
# that makes it may be written later, in any directory.
function(_firn_check_exists call option path)
  cmake_language(EVAL CODE
    "cmake_language(DEFER DIRECTORY [[${CMAKE_SOURCE_DIR}]] CALL _firn_check_exists_now [[${call}]] ${option} [[${path}]])")
endfunction()

function(_firn_check_exists_now call option path)
  if(EXISTS "${path}")
    return()
  endif()
  _firn_is_generated("${path}" "${CMAKE_SOURCE_DIR}" is_generated)
  if(NOT is_generated)
    _firn_refuse("${call}" "${option} '${path}' does not exist, and no command of this project has it as an output; if \
something else makes it, say so with set_source_files_properties(... PROPERTIES GENERATED TRUE)")
  endif()
endfunction()

# Whether a command in this directory or one below makes the file.
function(_firn_is_generated path directory result)
  get_source_file_property(found "${path}" DIRECTORY "${directory}" GENERATED)
  get_property(inner DIRECTORY "${directory}" PROPERTY SUBDIRECTORIES)
  while(NOT found AND inner)
    list(POP_FRONT inner next)
    _firn_is_generated("${path}" "${next}" found)
  endwhile()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

# Makes the model in 8-bit integers with the build, by QUANTIZE's words: DATA <folder> [BUDGET <number>]. Sets `result` to
# its path.
function(_firn_quantize call compiler model folder words result)
  cmake_parse_arguments(arg "" "DATA;BUDGET" "" ${words})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_DATA)
    list(JOIN words " " words)
    _firn_refuse("${call}" "QUANTIZE ${words}: wanted DATA <folder> [BUDGET <relative error>]")
  endif()
  get_filename_component(data "${arg_DATA}" ABSOLUTE)
  if(NOT IS_DIRECTORY "${data}")
    _firn_refuse("${call}" "QUANTIZE DATA '${data}' is not a folder")
  endif()
  set(options --data "${data}")
  if(DEFINED arg_BUDGET)
    list(APPEND options --budget "${arg_BUDGET}")
  endif()
  get_filename_component(name "${model}" NAME_WE)
  set(quantized "${folder}/${name}.int8.onnx")
  file(GLOB_RECURSE samples CONFIGURE_DEPENDS "${data}/*")
  add_custom_command(
    OUTPUT "${quantized}"
    BYPRODUCTS "${folder}/${name}.int8.html"
    COMMAND "${compiler}" quantize "${model}" -o "${quantized}" --quiet ${options}
    DEPENDS "${model}" "${compiler}" ${samples}
    COMMENT "Quantising model ${name}"
    VERBATIM)
  set(${result} "${quantized}" PARENT_SCOPE)
endfunction()

# Sets `result` to how names of C functions of the class start: two classes with one start are taken for one.
function(_firn_symbol_prefix class result)
  string(REPLACE "::" "_" prefix "${class}")
  string(REGEX REPLACE "([a-z0-9])([A-Z])" "\\1_\\2" prefix "${prefix}")
  string(REGEX REPLACE "([A-Z])([A-Z][a-z])" "\\1_\\2" prefix "${prefix}")
  string(TOLOWER "${prefix}" prefix)
  if(NOT prefix MATCHES "_")
    string(APPEND prefix "_model")
  endif()
  set(${result} "${prefix}" PARENT_SCOPE)
endfunction()

# Notes the class of a target, and stops at one that another target has.
function(_firn_claim_class call target class)
  _firn_symbol_prefix("${class}" prefix)
  get_property(owner GLOBAL PROPERTY FIRN_OWNER_OF_${prefix})
  if(owner)
    list(POP_FRONT owner owner_target owner_class)
    _firn_refuse("${call}" "CLASS ${class} has the names of CLASS ${owner_class} of the target '${owner_target}' (in C \
they start with ${prefix}_); give one of the two another class")
  endif()
  set_property(GLOBAL PROPERTY FIRN_OWNER_OF_${prefix} "${target}" "${class}")
endfunction()

# The library around an object and a header. install(TARGETS) takes the header along.
function(_firn_model_library call target object header class)
  if(class)
    _firn_claim_class("${call}" ${target} "${class}")
  endif()
  add_library(${target} STATIC "${object}" "${header}")
  set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT TRUE)
  get_filename_component(folder "${header}" DIRECTORY)
  get_filename_component(header_name "${header}" NAME)
  set(language CXX)
  if(CMAKE_C_COMPILER_LOADED)
    set(language C)
  endif()
  set(installed_include "${CMAKE_INSTALL_INCLUDEDIR}")
  if(NOT installed_include)
    set(installed_include include)
  endif()
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE ${language} PUBLIC_HEADER "${header}"
    FIRN_CLASS "${class}" FIRN_HEADER "${header_name}")
  target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${folder}>" "$<INSTALL_INTERFACE:${installed_include}>")
  target_link_libraries(${target} PUBLIC Firn::runtime)
  if(CMAKE_CXX_COMPILER_LOADED)
    target_compile_features(${target} INTERFACE cxx_std_17)
  endif()
endfunction()

function(firn_add_library target)
  set(call "firn_add_library(${target})")
  set(single MODEL CLASS TARGET CPU OPT MATH PRECISION WEIGHTS THREADS FLASH_BUDGET RAM_BUDGET PREBUILT_OBJECT PREBUILT_HEADER)
  set(multiple NAMES CUSTOM_OP DIMS CONST MULTIVERSION STATE EXTERNAL QUANTIZE OPTIONS)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "${single}" "${multiple}")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    _firn_refuse("${call}" "cannot read: ${arg_UNPARSED_ARGUMENTS} ${arg_KEYWORDS_MISSING_VALUES}")
  endif()
  if(arg_PREBUILT_OBJECT OR arg_PREBUILT_HEADER)
    if(NOT arg_PREBUILT_OBJECT OR NOT arg_PREBUILT_HEADER)
      _firn_refuse("${call}" "PREBUILT_OBJECT and PREBUILT_HEADER belong together")
    endif()
    get_filename_component(object "${arg_PREBUILT_OBJECT}" ABSOLUTE)
    get_filename_component(header "${arg_PREBUILT_HEADER}" ABSOLUTE)
    _firn_check_exists("${call}" PREBUILT_OBJECT "${object}")
    _firn_check_exists("${call}" PREBUILT_HEADER "${header}")
    _firn_model_library("${call}" ${target} "${object}" "${header}" "${arg_CLASS}")
    return()
  endif()
  if(NOT arg_MODEL OR NOT arg_CLASS)
    _firn_refuse("${call}" "MODEL and CLASS are required")
  endif()
  _firn_check_choice("${call}" OPT "${arg_OPT}" speed size debug)
  _firn_check_choice("${call}" MATH "${arg_MATH}" default strict)
  _firn_check_choice("${call}" PRECISION "${arg_PRECISION}" f32 bf16)
  _firn_check_choice("${call}" WEIGHTS "${arg_WEIGHTS}" embed init file)
  _firn_check_supported("${call}" "${arg_THREADS}" "${arg_WEIGHTS}" "${arg_STATE}" "${arg_DIMS}" "${arg_CONST}")
  _firn_compiler("${call}" compiler)

  if(arg_CPU AND arg_MULTIVERSION)
    _firn_refuse("${call}" "CPU is one, MULTIVERSION several: give one of the two")
  endif()
  _firn_target_options("${arg_TARGET}" "${arg_CPU}" options)
  if(arg_MULTIVERSION)
    list(FILTER options EXCLUDE REGEX "^-m(cpu|attr)=")
    list(JOIN arg_MULTIVERSION "," cpus)
    list(APPEND options "--multiversion=${cpus}")
  endif()
  set(opt_ -O3)
  set(opt_speed -O3)
  set(opt_size -Os)
  set(opt_debug -O0)
  list(APPEND options ${opt_${arg_OPT}})
  if(arg_MATH)
    list(APPEND options "--math=${arg_MATH}")
  endif()
  if(arg_PRECISION)
    list(APPEND options "--precision=${arg_PRECISION}")
  endif()
  if(arg_THREADS)
    list(APPEND options "--threads=${arg_THREADS}")
  endif()
  if(arg_WEIGHTS STREQUAL "init")
    list(APPEND options "--weights=init")
  endif()
  if(arg_FLASH_BUDGET)
    list(APPEND options "--flash-budget=${arg_FLASH_BUDGET}")
  endif()
  if(arg_RAM_BUDGET)
    list(APPEND options "--ram-budget=${arg_RAM_BUDGET}")
  endif()
  foreach(pair IN ITEMS NAMES/--name CUSTOM_OP/--custom-op DIMS/--dim STATE/--state EXTERNAL/--external)
    string(REGEX MATCH "^(.*)/(.*)$" pair "${pair}")
    set(option "${CMAKE_MATCH_2}")
    foreach(value IN LISTS arg_${CMAKE_MATCH_1})
      list(APPEND options "${option}" "${value}")
    endforeach()
  endforeach()
  # Files lie beside the model in the source folder, and are read whenever it is compiled.
  set(constant_files "")
  foreach(constant IN LISTS arg_CONST)
    if(constant MATCHES "^([^=]+)=(.+\\.(npy|pb))$")
      set(input "${CMAKE_MATCH_1}")
      get_filename_component(file "${CMAKE_MATCH_2}" ABSOLUTE)
      _firn_check_exists("${call}" CONST "${file}")
      list(APPEND constant_files "${file}")
      set(constant "${input}=${file}")
    endif()
    list(APPEND options --const "${constant}")
  endforeach()
  list(APPEND options ${arg_OPTIONS})

  get_filename_component(model "${arg_MODEL}" ABSOLUTE)
  get_filename_component(model_name "${arg_MODEL}" NAME)
  _firn_check_exists("${call}" MODEL "${model}")
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.firn")
  set(stem "${folder}/${target}")
  file(MAKE_DIRECTORY "${folder}")
  if(DEFINED arg_QUANTIZE)
    _firn_quantize("${call}" "${compiler}" "${model}" "${folder}" "${arg_QUANTIZE}" model)
  endif()
  add_custom_command(
    OUTPUT "${stem}.o" "${stem}.h" "${stem}.json"
    COMMAND "${compiler}" compile "${model}" -o "${stem}" --class "${arg_CLASS}" --depfile "${stem}.d" --quiet
      ${options}
    DEPENDS "${model}" "${compiler}" ${constant_files}
    DEPFILE "${stem}.d"
    COMMENT "Compiling model ${model_name}"
    VERBATIM)
  _firn_model_library("${call}" ${target} "${stem}.o" "${stem}.h" "${arg_CLASS}")
endfunction()

# A test program that runs the library's class on stored inputs and compares with stored outputs: DATA is a folder with
# input_0.pb ... and output_0.pb ..., or one with such folders named test_data_set_*.
function(firn_add_golden_test test)
  set(call "firn_add_golden_test(${test})")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LIBRARY;DATA;TOLERANCE" "")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_LIBRARY OR NOT arg_DATA)
    _firn_refuse("${call}" "wanted LIBRARY <target> DATA <folder> [TOLERANCE <number>]")
  endif()
  if(NOT DEFINED arg_TOLERANCE)
    set(arg_TOLERANCE 1e-5)
  endif()
  get_target_property(class ${arg_LIBRARY} FIRN_CLASS)
  get_target_property(header ${arg_LIBRARY} FIRN_HEADER)
  if(NOT class OR NOT header)
    _firn_refuse("${call}" "'${arg_LIBRARY}' is no target of firn_add_library with a CLASS")
  endif()
  get_filename_component(data "${arg_DATA}" ABSOLUTE)
  _firn_check_exists("${call}" DATA "${data}")
  add_executable(${test} "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/golden/golden_test.cpp")
  target_compile_definitions(${test} PRIVATE "FIRN_GOLDEN_CLASS=${class}" "FIRN_GOLDEN_HEADER=\"${header}\"")
  target_link_libraries(${test} PRIVATE ${arg_LIBRARY})
  add_test(NAME ${test} COMMAND ${test} "${data}" ${arg_TOLERANCE})
endfunction()

cmake_policy(POP)
