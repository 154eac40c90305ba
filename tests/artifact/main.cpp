// Catch2's main for this folder's test programs.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
