# Every stored network through firn_add_library and its generated class. Compiled without optimisation, which other tests
# of the same networks have: this one is about the header and the build.
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)
set(networks "${FIRN_SOURCE}/models/digits")
if(FIRN_TEST_DATA)
  file(GLOB folders "${FIRN_TEST_DATA}/models/*/test_data_set_0")
  list(TRANSFORM folders REPLACE "/test_data_set_0$" "")
  list(APPEND networks ${folders})
endif()
list(JOIN networks "\\;" networks)
configure("${tests}/networks" "${work}" ${compilers} "-DNETWORKS=${networks}" -DOPT=debug "-DPREPARED=digits\;ultraface_rfb_320")
build("${work}")
run(${CMAKE_CTEST_COMMAND} --test-dir "${work}" --output-on-failure --no-tests=error)
