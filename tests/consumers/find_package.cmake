# Firn from an installation, in a C++-only project.
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)
configure("${tests}/find_package" "${work}" ${compilers})
build("${work}")
run("${work}/app")
