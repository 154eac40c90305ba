// See channel_blocks.h. Ops that follow their operands' layout tie values together: the blocks of all of
// these are of one size, and one that wants lanes decides.
#include "compiler/passes/layout/channel_blocks.h"

#include "compiler/passes/match.h"
#include "compiler/plan/contraction/choose_matrices.h"
#include "compiler/plan/graph_forms.h"

#include <algorithm>

namespace firn {
namespace {

using Instructions = std::vector<const Instruction*>;

class ChannelBlocks {
public:
  ChannelBlocks(const std::unordered_set<const Instruction*>& blocked, int lanes, const PassOptions& options)
      : blocked_(blocked), lanes_(lanes), options_(options) {}

  std::unordered_map<const Instruction*, int> run() {
    for (const Instruction* instruction : blocked_)
      if (!sizes_.count(instruction)) set(tied_to(instruction));
    return std::move(sizes_);
  }

private:
  // Whether the instruction's result has the layout of its operands. Windows over rows of bytes do as well.
  bool follows(const Instruction& instruction) const {
    const bool is_window_walk = plan::multiplies_rows_of_bytes(*options_.target) &&
                                instruction.is(Opcode::Convolution) &&
                                plan::has_groups_within_blocks(instruction, lanes_);
    return blocked_.count(&instruction) && (!instruction.is(Opcode::Convolution) || is_window_walk);
  }

  Instructions tied_to(const Instruction* first) const {
    Instructions tied{first};
    std::unordered_set<const Instruction*> seen{first};
    auto tie = [&](const Instruction* other) {
      if (blocked_.count(other) && seen.insert(other).second) tied.push_back(other);
    };
    for (size_t i = 0; i < tied.size(); ++i) {
      const Instruction& instruction = *tied[i];
      if (follows(instruction))
        for (Value operand : tensor_operands(instruction)) tie(operand.def);
      for (const Instruction* user : instruction.users())
        if (follows(*user) && contains_def(tensor_operands(*user), instruction)) tie(user);
    }
    return tied;
  }

  static bool contains_def(const std::vector<Value>& values, const Instruction& instruction) {
    return std::any_of(values.begin(), values.end(), [&](Value value) { return value.def == &instruction; });
  }

  // Channels of a block for products of rows: all of a position's, or those of whole rows if values have
  // several sizes. 0: neither fits, or there are no bytes.
  int channels_of_rows_in(const Instructions& tied) const {
    const int row = k_group_of(MacKind::Dot16);
    int channels = 0;
    bool are_equal = true, are_rows = true;
    for (const Instruction* instruction : tied) {
      const Dim& dim = instruction->type().dims[1];
      channels = std::max(channels, channels_of_rows(instruction->type(), lanes_, options_));
      are_equal &= dim.is_static() && dim == tied[0]->type().dims[1];
      are_rows &= can_be_cut(*instruction, row);
      for (const Instruction* user : instruction->users())
        if (sums_channels(*user)) return 0;
    }
    return are_equal || channels == 0 ? channels : are_rows ? row : 0;
  }

  static bool sums_channels(const Instruction& user) {
    return user.is(Opcode::Reduce) && contains(user.attributes().ints("dims"), 1);
  }

  void set(const Instructions& tied) {
    if (int channels = channels_of_rows_in(tied)) {
      for (const Instruction* instruction : tied) sizes_[instruction] = channels;
      return;
    }
    int row = row_of(tied);
    bool fits = row > lanes_ && std::all_of(tied.begin(), tied.end(), [&](const Instruction* instruction) {
                  return can_be_made(*instruction, row) && can_be_read(*instruction, row);
                });
    for (const Instruction* instruction : tied) sizes_[instruction] = fits ? row : lanes_;
  }

  // Channels of a row of the first tiles that read any of the values; 0: none do.
  int row_of(const Instructions& tied) const {
    for (const Instruction* instruction : tied)
      for (const Instruction* user : instruction->users())
        if (int row = row_read_by(*user, *instruction)) return row;
    return 0;
  }

  int row_read_by(const Instruction& user, const Instruction& instruction) const {
    if (!user.is(Opcode::Convolution) || user.operand(0).def != &instruction) return 0;
    return plan::channels_of_row(user, *options_.target, options_.goals.strict_math());
  }

  bool can_be_made(const Instruction& instruction, int row) const {
    return can_be_cut(instruction, row) &&
           (!instruction.is(Opcode::Convolution) ||
            plan::channels_of_row(instruction, *options_.target, options_.goals.strict_math()) > 0);
  }

  // Whether blocks of `row` channels hold the value, and begin where those of its operands do.
  static bool can_be_cut(const Instruction& instruction, int row) {
    if (!fills(instruction.type(), row)) return false;
    switch (instruction.opcode()) {
    case Opcode::Slice:
      return instruction.attributes().ints("starts")[1] % row == 0 &&
             fills(instruction.operand(0).type(), row);
    case Opcode::Concatenate: {
      std::vector<Value> operands = instruction.operands();
      return std::all_of(operands.begin(), operands.end(),
                         [&](Value value) { return fills(value.type(), row); });
    }
    default: return true;
    }
  }

  static bool fills(const Type& type, int row) {
    const Dim& channels = type.dims[1];
    return channels.is_static() && channels.value() % row == 0;
  }

  // Whether users that read the value in blocks can read blocks of `row` channels. All others read it plain.
  bool can_be_read(const Instruction& instruction, int row) const {
    std::vector<Instruction*> users = instruction.users();
    return std::all_of(users.begin(), users.end(), [&](const Instruction* user) {
      if (user->is(Opcode::Convolution) && user->operand(0).def == &instruction)
        return row_read_by(*user, instruction) == row;
      return !sums_channels(*user);
    });
  }

  const std::unordered_set<const Instruction*>& blocked_;
  int lanes_;
  const PassOptions& options_;
  std::unordered_map<const Instruction*, int> sizes_;
};

} // namespace

std::vector<Value> tensor_operands(const Instruction& instruction) {
  if (is_elementwise(instruction.opcode()) || instruction.is(Opcode::Concatenate))
    return instruction.operands();
  if (looks_up_bytes(instruction)) return {instruction.operand(1)};
  if (instruction.is(Opcode::SelectAndScatter)) return {instruction.operand(0), instruction.operand(1)};
  return {instruction.operand(0)};
}

int channels_of_rows(const Type& type, int lanes, const PassOptions& options) {
  if (!plan::multiplies_rows_of_bytes(*options.target) || !type.dims[1].is_static() ||
      !is_integer(type.dtype) || bit_width(type.dtype) != 8)
    return 0;
  return static_cast<int>((type.dim(1) + lanes - 1) / lanes * lanes);
}

std::unordered_map<const Instruction*, int>
channels_per_block(const std::unordered_set<const Instruction*>& blocked, int lanes,
                   const PassOptions& options) {
  return ChannelBlocks(blocked, lanes, options).run();
}

} // namespace firn
