// Schedules of contractions as text: what --explain prints and --schedule-db reads back, so that the choice
// of the cost model can be seen and overruled. One line of a database:
//
//   CPU SIGNATURE => direct tile ROWSxVECTORS [phases N] [depth N] [columns|rows outermost]
//   CPU SIGNATURE => winograd HxW [tile ROWSxVECTORS] [batch TILES]
//
// with the CPU and signature as --explain prints them. '#' starts a comment.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/target/target_machine.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace firn::plan {

struct Schedule {
  enum class Algorithm : uint8_t { Direct, Winograd } algorithm = Algorithm::Direct;
  int outputs_high = 0, outputs_wide = 0;           // Winograd
  int64_t batch = 0;                                // Winograd: tiles per batch; 0: chosen
  int rows = 0, vectors = 0, phases = 1, depth = 1; // of the register tile; 0: chosen
  std::optional<bool> columns_outermost;            // Direct
  std::string to_string() const;
};

// What identifies a contraction in a database: CPU, operand types, attributes.
std::string contraction_signature(const Instruction& contraction, const Type& result,
                                  const TargetMachine& target);

class ScheduleDatabase {
public:
  // Reads a database; a missing file or a line that is none is a usage error naming file and line.
  static Expected<ScheduleDatabase> read(const std::string& path);
  static Expected<ScheduleDatabase> parse(const std::string& name, std::string_view text);
  // The schedule of a signature, null if there is none.
  const Schedule* find(const std::string& signature) const;

private:
  std::map<std::string, Schedule> schedules_;
};

// Why a contraction is computed as it is.
struct Explanation {
  struct Candidate {
    Schedule schedule;
    double cycles = 0;
    std::string note; // why it was not taken, or what else is known of it
  };
  std::string location, signature;
  Schedule chosen;
  bool overruled = false;  // by the database
  int64_t added_bytes = 0; // of filters transformed for Winograd's algorithm, beside the model's own
  bool left_out = false;   // Winograd's algorithm is faster, but not worth the bytes of its filters
  std::vector<Candidate> candidates; // chosen one included, fastest first
};
std::string explanation_text(const std::vector<Explanation>& explanations);

} // namespace firn::plan
