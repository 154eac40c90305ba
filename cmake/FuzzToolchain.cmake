# The newest clang there is; without one, the default compiler.
find_program(FIRN_CLANGXX NAMES clang++-21 clang++-20 clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14 clang++)
if(FIRN_CLANGXX)
  string(REPLACE "clang++" "clang" FIRN_CLANG "${FIRN_CLANGXX}")
  set(CMAKE_CXX_COMPILER "${FIRN_CLANGXX}")
  set(CMAKE_C_COMPILER "${FIRN_CLANG}")
endif()
