// form-line-buffers: a convolution that reads a map of moved or padded elements makes the map itself, a few
// lines at a time, on machines whose memory is dear.
//
//   %m = pad %x, %z {...}                              %c = fusion %x, %w {kind = line_buffer, rows = 2}
//   %c = fusion %m, %w {kind = contraction}      ->      region(...) { %m and %c as before; return %c }
//
// Pads, copies, slices, concatenations and transposes are taken in that the convolution alone reads.
// Quantised convolutions with a zero point, whose padding is not zeros, have a padded map, and those of few
// channels one of unfolded windows.
//
// - Requires: fusions are formed.
// - Breaks: other passes do not look inside.
#include "compiler/passes/fusion/fusion_builder.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/windows/line_buffer.h"

#include <algorithm>

namespace firn {
namespace {

bool moves_elements(const Instruction& instruction) {
  switch (instruction.opcode()) {
  case Opcode::Concatenate:
  case Opcode::Copy:
  case Opcode::Pad:
  case Opcode::Slice:
  case Opcode::Transpose: return instruction.type().is_static();
  default: return false;
  }
}

// The map that the convolution of a member reads, if nothing else of the member does.
Value map_of(const Instruction& member) {
  const Instruction* convolution = convolution_of(member);
  Value map = convolution->operand(0);
  if (convolution != &member) map = map.def->users().size() == 1 ? outside_of(member, map) : Value{};
  bool is_sole = map && std::count(member.operands().begin(), member.operands().end(), map) == 1;
  return is_sole ? map : Value{};
}

class LineBufferFormer {
public:
  LineBufferFormer(Region& region, const PassOptions& options) : region_(region), options_(options) {}

  bool run() {
    std::vector<Instruction*> convolutions;
    for (const auto& instruction : region_.instructions())
      if (convolution_of(*instruction)) convolutions.push_back(instruction.get());
    bool changed = false;
    for (Instruction* convolution : convolutions) changed |= form(*convolution);
    return changed;
  }

private:
  // The movements that make the map for `user` alone, in program order.
  std::vector<Instruction*> movements_before(const Instruction& user, Value map) const {
    std::vector<Instruction*> before;
    for (const auto& instruction : region_.instructions()) {
      if (instruction.get() == &user) break;
      before.push_back(instruction.get());
    }
    std::vector<Instruction*> taken;
    auto is_taken = [&](const Instruction* reader) {
      return std::find(taken.begin(), taken.end(), reader) != taken.end();
    };
    for (size_t i = before.size(); i-- > 0;) {
      Instruction* movement = before[i];
      if (!moves_elements(*movement)) continue;
      const auto& users = movement->users();
      bool is_returned = movement->num_uses(0) != static_cast<int>(users.size());
      bool is_map = movement == map.def && users.size() == 1; // read by `user`
      bool is_part =
          movement != map.def && !users.empty() && std::all_of(users.begin(), users.end(), is_taken);
      if (!is_returned && (is_map || is_part)) taken.push_back(movement);
    }
    std::reverse(taken.begin(), taken.end());
    return taken;
  }

  bool form(Instruction& convolution) {
    Value map = map_of(convolution);
    if (!map) return false;
    std::vector<Instruction*> members = movements_before(convolution, map);
    if (members.empty() || members.back() != map.def) return false;
    int64_t rows = plan::rows_to_buffer(convolution, {*options_.target, options_.goals});
    if (rows == 0 || !options_.take_rewrite()) return false;
    members.push_back(&convolution);
    make_fusion(members, FusionKind::LineBuffer)->attributes().set("rows", rows);
    for (size_t i = members.size(); i-- > 0;) region_.erase(members[i]);
    return true;
  }

  Region& region_;
  const PassOptions& options_;
};

} // namespace

bool form_line_buffers(Module& module, const PassOptions& options) {
  bool changed = false;
  if (options.target)
    for_each_region(module, [&](Region& region) { changed |= LineBufferFormer(region, options).run(); });
  return changed;
}

} // namespace firn
