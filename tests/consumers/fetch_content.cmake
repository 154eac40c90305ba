# Firn through FetchContent from a path, without its compiler: an executable for this machine stands in.
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)
configure("${tests}/fetch_content" "${work}" ${compilers} "-DFIRN_SOURCE=${FIRN_SOURCE}" -DFIRN_BUILD_COMPILER=OFF
  "-DFIRN_EXECUTABLE=${FIRN_TOOL}")
build("${work}")
run("${work}/app")
