# Firn as a subfolder: the consumer's build makes the compiler first, then the model.
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)
configure("${tests}/add_subdirectory" "${work}" ${compilers} "-DFIRN_SOURCE=${FIRN_SOURCE}"
  -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache)
build("${work}" --target app)
run("${work}/app")
