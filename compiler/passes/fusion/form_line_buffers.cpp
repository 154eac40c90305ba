// form-line-buffers: a convolution that reads a map of moved or padded elements makes the map itself, a few
// lines at a time, on machines whose memory is dear.
//
//   %m = pad %x, %z {...}                              %c = fusion %x, %w {kind = line_buffer, rows = 2}
//   %c = fusion %m, %w {kind = contraction}      ->      region(...) { %m and %c as before; return %c }
//
// Pads, copies, slices, concatenations and transposes are taken in that the convolution alone reads. The
// convolution whose result a depthwise one reads padded is taken in where the maps between them are among the
// largest of the region:
//
//   %e = fusion %x, %v {kind = contraction}            %c = fusion %x, %v, %w {kind = line_buffer, rows = 2}
//   %m = pad %e, %z {...}                        ->      region(...) { %e, %m and %c as before; return %c }
//   %c = fusion %m, %w {kind = contraction}
//
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
    for (const auto& instruction : region_.instructions())
      if (!moves_elements(*instruction)) max_bytes_ = std::max(max_bytes_, touched_bytes(*instruction));
    bool changed = false;
    for (Instruction* convolution : convolutions) changed |= join(*convolution) || form(*convolution);
    return changed;
  }

private:
  // The bytes that are there while an instruction is computed, but for constants.
  static int64_t touched_bytes(const Instruction& instruction) {
    int64_t bytes = 0;
    auto add = [&](const Type& type) {
      if (type.is_tensor() && type.is_static()) bytes += static_cast<int64_t>(type.physical_byte_size());
    };
    for (Value operand : instruction.operands())
      if (!operand.def->is(Opcode::Constant)) add(operand.type());
    for (int i = 0; i < instruction.num_results(); ++i) add(instruction.type(i));
    return bytes;
  }

  // Joins a depthwise convolution with the one whose padded result it reads.
  bool join(Instruction& convolution) {
    Value map = map_of(convolution);
    if (!map || !map.def->is(Opcode::Pad) || map.def->parent() != &region_) return false;
    Instruction *pad = map.def, *producer = pad->operand(0).def;
    auto is_read_once = [](const Instruction& made) {
      return made.num_results() == 1 && made.users().size() == 1 && made.num_uses(0) == 1;
    };
    if (!convolution_of(*producer) || producer->parent() != &region_ || !is_read_once(*producer) ||
        !is_read_once(*pad))
      return false;
    const int64_t bytes = std::max(touched_bytes(*producer), touched_bytes(convolution));
    if (bytes < max_bytes_ / 5 * 4) return false;
    int64_t rows = plan::rows_to_buffer(*producer, *pad, convolution, {*options_.target, options_.goals});
    if (rows == 0 || !options_.take_rewrite()) return false;
    make_fusion({producer, pad, &convolution}, FusionKind::LineBuffer)->attributes().set("rows", rows);
    for (Instruction* member : {&convolution, pad, producer}) region_.erase(member);
    return true;
  }

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
  int64_t max_bytes_ = 0; // the most that an instruction touches which computes
};

} // namespace

bool form_line_buffers(Module& module, const PassOptions& options) {
  bool changed = false;
  if (options.target)
    for_each_region(module, [&](Region& region) { changed |= LineBufferFormer(region, options).run(); });
  return changed;
}

} // namespace firn
