# The features project, tested by its own ctest; the symbols and the sameness of its objects.
include(${CMAKE_CURRENT_LIST_DIR}/consumer.cmake)
configure("${tests}/features" "${work}/one" ${compilers})
build("${work}/one")
run(${CMAKE_CTEST_COMMAND} --test-dir "${work}/one" --output-on-failure --no-tests=error)

# An object refers to memory functions and the runtime alone.
find_program(NM nm REQUIRED)
foreach(name IN ITEMS affine doubler)
  set(object "${work}/one/${name}.firn/${name}.o")
  execute_process(COMMAND ${NM} -u "${object}" OUTPUT_VARIABLE undefined COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^ \n]+[\n]" symbols "${undefined}")
  foreach(symbol IN LISTS symbols)
    string(STRIP "${symbol}" symbol)
    if(NOT symbol MATCHES "^(memcpy|memset|memmove|firn_rt2_.*|_GLOBAL_OFFSET_TABLE_)$")
      message(FATAL_ERROR "${object} refers to ${symbol}")
    endif()
  endforeach()
endforeach()

# A model with indices that are known only at run time says what becomes of those out of range; others do not.
foreach(name IN ITEMS caches affine)
  file(STRINGS "${work}/one/${name}.firn/${name}.h" lines REGEX "Indices out of range are clamped")
  list(LENGTH lines lines_of_${name})
endforeach()
if(NOT lines_of_caches EQUAL 2 OR NOT lines_of_affine EQUAL 0)
  message(FATAL_ERROR "lines on clamped indices: ${lines_of_caches} of caches, ${lines_of_affine} of affine")
endif()

# Another build folder gives the same bytes.
configure("${tests}/features" "${work}/other" ${compilers})
build("${work}/other" --target affine doubler)
foreach(file IN ITEMS affine.o affine.h affine.json doubler.o doubler.h doubler.json)
  string(REGEX REPLACE "\\..*" "" name "${file}")
  run(${CMAKE_COMMAND} -E compare_files "${work}/one/${name}.firn/${file}" "${work}/other/${name}.firn/${file}")
endforeach()
