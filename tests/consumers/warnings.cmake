# The runtime, the public headers and what Firn generates, without one of many warnings, by every compiler that is here: the
# one of Firn's build, and Clang 14 to 19. In each of the standards, with files compiled together and apart.
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)

function(check_compiler name c cxx)
  configure("${tests}/warnings" "${work}/${name}" "-DCMAKE_C_COMPILER=${c}" "-DCMAKE_CXX_COMPILER=${cxx}" ${ARGN})
  build("${work}/${name}")
  run("${CMAKE_CTEST_COMMAND}" --test-dir "${work}/${name}" --output-on-failure --no-tests=error)
endfunction()

check_compiler(together "${C_COMPILER}" "${CXX_COMPILER}" -DCMAKE_UNITY_BUILD=ON)
check_compiler(apart "${C_COMPILER}" "${CXX_COMPILER}")
foreach(version RANGE 14 19)
  find_program(CLANG_${version} clang-${version})
  find_program(CLANGXX_${version} clang++-${version})
  if(CLANG_${version} AND CLANGXX_${version})
    check_compiler(clang_${version} "${CLANG_${version}}" "${CLANGXX_${version}}" -DCMAKE_UNITY_BUILD=ON)
  endif()
endforeach()
