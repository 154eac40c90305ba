# One object with two entry functions over shared weights and a shared state, from C++, C and CMake.
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)
cmake_host_system_information(RESULT processor QUERY OS_PLATFORM)
configure("${tests}/entries" "${work}" ${compilers} "-DPROCESSOR=${processor}")
build("${work}")
run("${work}/in_cpp")
run("${work}/in_c")
