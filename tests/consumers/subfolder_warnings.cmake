# What a project that has Firn as a subfolder is told of its own sources, and makes errors of, does not end its build at the
# compiler's sources; and Firn makes no warning an error.
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)
find_program(CCACHE ccache)
if(CCACHE)
  set(launchers -DCMAKE_C_COMPILER_LAUNCHER=${CCACHE} -DCMAKE_CXX_COMPILER_LAUNCHER=${CCACHE})
endif()
set(arguments ${compilers} "-DFIRN_SOURCE=${FIRN_SOURCE}" ${launchers} -DCMAKE_UNITY_BUILD=ON -DCMAKE_EXPORT_COMPILE_COMMANDS=ON)

configure("${tests}/checked_sources" "${work}" ${arguments} "-DWARNINGS=-Wall\\\;-Wextra\\\;-Wconversion\\\;-Wold-style-cast")
file(READ "${work}/compile_commands.json" commands)
if(commands MATCHES "-Werror")
  message(FATAL_ERROR "Firn makes errors of warnings in a project that does not")
endif()

configure("${tests}/checked_sources" "${work}" ${arguments} "-DWARNINGS=-Wall\\\;-Wextra\\\;-Wconversion\\\;-Wold-style-cast\\\;-Werror")
build("${work}" --target firn_support firn_runtime)
