// The schedule database: plans by what identifies a kernel, so that the choice of the cost model can be seen
// (--explain) and overruled (--schedule-db). A database begins with its version:
//
//   firn-schedules 1
//   CPU SIGNATURE => PLAN
//   ...
//
// with the CPU and signature as --explain prints them, and a plan as kernel_plan.h reads it. '#' starts a
// comment.
#pragma once

#include "compiler/plan/candidate.h"
#include "compiler/target/machine.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace firn::plan {

// The signature that identifies the kernel of an instruction in a database: CPU, operation, types and
// attributes. A fusion around a dot or convolution has the signature of that one.
std::string kernel_signature(const Instruction& instruction, const Machine& target);

class ScheduleDatabase {
public:
  // Reads a database; a missing file, another version and a line that is none are usage errors naming file
  // and line.
  static Expected<ScheduleDatabase> read(const std::string& path);
  static Expected<ScheduleDatabase> parse(const std::string& name, std::string_view text);
  // The plan of a signature, null if there is none.
  const PlanRequest* find(const std::string& signature) const;
  // Lines that have had no effect, each as a text that names its place: those that a later one of the same
  // signature replaces, and those that find() was not asked for.
  std::vector<std::string> idle_lines() const;

private:
  struct Line {
    std::string place; // "FILE:12"
    PlanRequest plan;
    mutable bool is_used = false;
  };
  std::map<std::string, Line> lines_;
  std::vector<std::string> replaced_;
};

// Why a kernel is computed as it is.
struct Explanation {
  const Instruction* instruction = nullptr;
  std::string location, signature;
  KernelPlan chosen;
  std::string code_of;                    // the CPU whose code several have; empty: each has its own
  std::optional<KernelPlan> plan_of_code; // that CPU's
  bool overruled = false;                 // by the database
  std::string refused;     // why the database's plan is not possible here; empty: there is none, or it is
  int64_t added_bytes = 0; // bytes of filters transformed for Winograd's algorithm, beside the model's own
  bool left_out = false;   // Winograd's algorithm is faster, but not worth the bytes of its filters
  std::vector<Candidate> candidates; // whose cycles were counted, the chosen one included
};
// A database of the plans that were chosen, with what else is known as comments.
std::string explanation_text(const std::vector<Explanation>& explanations);

} // namespace firn::plan
