// Texts of PTX with one barrier, wait or bound taken out.
#pragma once

#include <string>
#include <vector>

namespace firn::test {

enum class Taken { Barrier, Wait, Guard, Minimum, Condition };
std::string_view word(Taken taken);

struct Mutant {
  Taken taken;
  size_t line;           // that was changed, from 1
  std::string statement; // that stood there
  std::string text;      // the whole module
  // The module with a trap where the statement decides something: if that runs, the mutant does what the
  // original does. Empty: there is no such test.
  std::string probe;
};

// All mutants of a module, in the order of their lines:
// - without a `bar.sync`, or a wait for copies;
// - without a branch that leads forward, as over code for threads that have nothing to do;
// - with one operand of an integer minimum in place of the minimum;
// - with one of two conditions that both have to hold.
std::vector<Mutant> mutants_of(const std::string& ptx);

} // namespace firn::test
