// What planning is told besides the graph.
#pragma once

#include "compiler/target/target_info.h"

#include <vector>

namespace firn::plan {

// Which convolutions use Winograd's algorithm, and where their transformed filters come from: those where it
// pays for its bytes in the object (choose_winograd.h says when), or every one that it makes faster, with
// filters from the object or from its raw filters before the first run, or none.
enum class Winograd : uint8_t { Auto, Embed, Init, Off };

class ScheduleDatabase;
struct Explanation;

struct PlanOptions {
  const TargetInfo& target;
  bool optimize_size = false;
  bool strict_math = false;
  Winograd winograd = Winograd::Auto;
  const ScheduleDatabase* schedules = nullptr;      // overrules the cost model where it has an entry
  std::vector<Explanation>* explanations = nullptr; // filled in the order of the program
  int threads = 1;                                  // for which kernels are cut into items
};

} // namespace firn::plan
