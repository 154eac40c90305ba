// Makes a failing case small: fewer outputs and nodes and plainer options, as long as it fails in the same
// way.
#pragma once

#include "tests/random/check_case.h"

namespace firn::test {

using StillFails = std::function<bool(const TestCase&)>;

TestCase shrink(TestCase test, const StillFails& still_fails);

} // namespace firn::test
