// Objects that prepare their weights, given others than the model's own: what they compute is what the same
// graph with these weights means, or they refuse them.
#pragma once

#include "compiler/driver/object_runner.h"
#include "tests/random/check_case.h"
#include "tests/random/guarded_heap.h"

namespace firn::test {

// Runs the object with other elements in all tensors that the description lets change, and checks that it
// refuses another byte in one that it does not. The runner keeps other weights: this must be its last use.
Verdict check_other_weights(const TestCase& test, const driver::Compilation& compilation,
                            driver::ObjectRunner& runner, GuardedHeap& memory);

} // namespace firn::test
