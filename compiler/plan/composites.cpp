// Recognizes the forms of composites' bodies.
#include "compiler/plan/composites.h"

#include "compiler/graph/blocked_dot.h"
#include "compiler/graph/composites.h"
#include "compiler/plan/roots.h"
#include "compiler/target/mac.h"

#include <algorithm>

namespace firn::plan {
namespace {

constexpr std::string_view kRows[] = {"softmax", "log_softmax", "layer_norm", "rms_norm"};
constexpr int64_t kMaxMapRows = 64; // rows of an image that form one resampled line: they are straight code

constexpr std::string_view kRecurrent[] = {"lstm", "gru", "rnn"};

template <class Names> bool is_one_of(const Instruction& instruction, const Names& names) {
  return std::any_of(std::begin(names), std::end(names),
                     [&](std::string_view name) { return is_composite(instruction, name); });
}

// Adds a reduction of the body; false if it reduces other dims, or several values.
bool add_reduction(const Instruction& reduce, const Type& type, RowForm& form) {
  std::vector<int64_t> dims = reduce.attributes().ints("dims");
  std::sort(dims.begin(), dims.end());
  if (reduce.num_results() != 1 || reduce.operand(0).type().dims != type.dims) return false;
  if (!form.reductions.empty() && dims != form.dims) return false;
  form.dims = dims;
  form.reductions.push_back(const_cast<Instruction&>(reduce).result());
  return true;
}

// Whether register tiles cover a blocked dot: its blocks are whole words, and blocks of bytes are whole
// products.
bool has_tiles(const Instruction& instruction) {
  if (!is_blocked_dot(instruction) || instruction.type().at_bound().num_elements() == 0) return false;
  const Type& integers = instruction.operand(1).type();
  int64_t k_group = has_byte_rows(instruction) ? k_group_of(MacKind::Dot4) : 1;
  return has_whole_words(integers.dim(2), integers.dtype) && integers.dim(2) % k_group == 0 &&
         integers.dim(1) > 0;
}

} // namespace

std::optional<RowForm> find_rows(const Instruction& composite) {
  if (!is_one_of(composite, kRows) || composite.num_results() != 1) return std::nullopt;
  RowForm form;
  const Type& type = composite.type();
  for (const auto& instruction : composite.region().instructions()) {
    Opcode opcode = instruction->opcode();
    if (!has_element_form(*instruction)) return std::nullopt;
    bool is_row_code = is_elementwise(opcode) || opcode == Opcode::Constant || opcode == Opcode::Parameter ||
                       opcode == Opcode::BroadcastInDim || opcode == Opcode::Reshape;
    if (opcode == Opcode::Reduce ? !add_reduction(*instruction, type, form) : !is_row_code)
      return std::nullopt;
  }
  if (form.reductions.empty() || !type.layout.blocks.empty() || type.at_bound().num_elements() == 0)
    return std::nullopt;
  form.is_last_dim = form.dims == std::vector<int64_t>{type.rank() - 1} && type.layout.is_plain();
  return form;
}

bool can_store_exponentials(Value terms, const Type& result) {
  return terms.def->is(Opcode::Exponential) && terms.type() == result && result.dtype != DType::F16 &&
         result.dtype != DType::BF16;
}

std::optional<std::vector<ResampledDim>> find_resample(const Instruction& instruction) {
  auto dims = read_resample(instruction);
  if (!dims) return std::nullopt;
  int64_t map_rows = 1;
  for (size_t i = 0; i + 1 < dims->size() && map_rows <= kMaxMapRows; ++i) map_rows *= (*dims)[i].taps();
  if (map_rows > kMaxMapRows) return std::nullopt;
  return dims;
}

bool has_composite_kernel(const Instruction& instruction) {
  return is_one_of(instruction, kRows) || is_one_of(instruction, kRecurrent) ||
         find_resample(instruction).has_value() || is_composite(instruction, "pack") ||
         is_composite(instruction, "tree_ensemble") || has_tiles(instruction);
}

bool is_elementwise_composite(const Instruction& instruction) {
  if (!instruction.is(Opcode::Composite)) return false;
  const auto& body = instruction.region().instructions();
  return std::all_of(body.begin(), body.end(), [](const auto& inner) {
    Opcode opcode = inner->opcode();
    return is_elementwise(opcode) || opcode == Opcode::Constant || opcode == Opcode::Parameter ||
           opcode == Opcode::BroadcastInDim;
  });
}

} // namespace firn::plan
