// Catch2's main for the tests of the memory planner.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
