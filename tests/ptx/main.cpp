// Catch2's main function for the tests of this folder.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
