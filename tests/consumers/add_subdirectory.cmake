# Firn as a subfolder: the consumer's build makes the compiler first, then the model.
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)
find_program(CCACHE ccache)
if(CCACHE)
  set(launchers -DCMAKE_C_COMPILER_LAUNCHER=${CCACHE} -DCMAKE_CXX_COMPILER_LAUNCHER=${CCACHE})
endif()
configure("${tests}/add_subdirectory" "${work}" ${compilers} "-DFIRN_SOURCE=${FIRN_SOURCE}" ${launchers})
build("${work}" --target app)
run("${work}/app")
