// What planning is told besides the graph.
#pragma once

#include "compiler/target/target_info.h"

#include <vector>

namespace firn::plan {

// Which convolutions use Winograd's algorithm: those where it pays for the bytes of its filters in the object
// (choose_winograd.h says when), every one that it makes faster, or none.
enum class Winograd : uint8_t { WithinBytes, All, Off };

// What constant matrices are held in, of products that wait for them: as the model has them, or narrower.
enum class WeightType : uint8_t { AsGiven, BF16, I8, I4 };

class KernelPlans;
class ScheduleDatabase;
struct Explanation;

struct PlanOptions {
  const TargetInfo& target;
  bool optimize_size = false;
  bool strict_math = false;
  Winograd winograd = Winograd::WithinBytes;
  const ScheduleDatabase* schedules = nullptr;      // overrules the cost model where it has an entry
  std::vector<Explanation>* explanations = nullptr; // filled in the order of the program
  int threads = 1;                                  // for which kernels are cut into items
  // Plans of the same graph for another CPU, whose packed constants kernels are to read; null: they have
  // their own.
  const KernelPlans* packed_as = nullptr;
};

} // namespace firn::plan
