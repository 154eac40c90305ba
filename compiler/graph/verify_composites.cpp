// Checks of composites: a row per name with counts of operands and results, and a check of the rest.
#include "compiler/graph/verify_composites.h"

#include <algorithm>

namespace firn {
namespace {

using Wrong = std::optional<std::string>;

std::string list(const std::vector<Dim>& dims) {
  return Type::tensor(DType::F32, dims).to_string().substr(3);
}

// The attribute's value as a T; null if it is missing or of another kind.
template <class T> const T* attribute(const Instruction& composite, std::string_view name) {
  const Attribute* found = composite.attributes().find(name);
  return found ? std::get_if<T>(found) : nullptr;
}

template <class T> Wrong check_kind(const Instruction& composite, const char* name, const char* wanted) {
  if (attribute<T>(composite, name)) return std::nullopt;
  return "attribute " + std::string(name) + " is missing or of another kind, wants " + wanted;
}

Wrong check_word(const Instruction& composite, const char* name, std::initializer_list<const char*> words) {
  const Word* word = attribute<Word>(composite, name);
  std::string wanted;
  for (const char* each : words) {
    if (word && word->text == each) return std::nullopt;
    wanted += (wanted.empty() ? "" : ", ") + std::string(each);
  }
  return "attribute " + std::string(name) + " is " + (word ? word->text : "missing or no word") +
         ", wants one of " + wanted;
}

Wrong check_result(const Instruction& composite, int index, DType dtype, const std::vector<Dim>& dims) {
  const Type& type = composite.type(index);
  if (type.is_tensor() && type.dtype == dtype && type.dims == dims) return std::nullopt;
  return "result " + std::to_string(index) + " is " + type.to_string() + ", wants " +
         Type::tensor(dtype, dims).to_string();
}

// A dim of x, from which on or over which the composite computes.
Wrong check_dim(const Instruction& composite) {
  if (Wrong wrong = check_kind<int64_t>(composite, "dim", "a dim's number")) return wrong;
  int64_t dim = *attribute<int64_t>(composite, "dim");
  int rank = composite.operand(0).rank();
  if (dim >= 0 && dim < rank) return std::nullopt;
  return "dim = " + std::to_string(dim) + " of " + std::to_string(rank) + " dims";
}

Wrong check_epsilon(const Instruction& composite) {
  return check_kind<double>(composite, "epsilon", "a number");
}

Wrong check_stash(const Instruction& composite) {
  const DType* stash = attribute<DType>(composite, "stash");
  if (stash && (*stash == DType::F32 || *stash == DType::F64)) return std::nullopt;
  return "attribute stash is missing or no f32 or f64";
}

// A float of dims that broadcast to x's.
Wrong check_broadcasts(const Instruction& composite, int index) {
  const Type &x = composite.operand(0).type(), &type = composite.operand(index).type();
  bool fits = is_float(type.dtype) && type.rank() <= x.rank();
  for (int i = 0; fits && i < type.rank(); ++i) {
    const Dim& own = type.dims[static_cast<size_t>(i)];
    fits = own == Dim(1) || own == x.dims[static_cast<size_t>(x.rank() - type.rank() + i)];
  }
  if (fits) return std::nullopt;
  return "operand " + std::to_string(index) + " is " + type.to_string() +
         ", wants floats that broadcast to " + list(x.dims);
}

// A float for each of x's channels.
Wrong check_per_channel(const Instruction& composite, int index) {
  const Type &x = composite.operand(0).type(), &type = composite.operand(index).type();
  if (is_float(type.dtype) && type.rank() == 1 && type.dims[0] == x.dims[1]) return std::nullopt;
  return "operand " + std::to_string(index) + " is " + type.to_string() + ", wants a float for each of " +
         x.dims[1].extent.to_string() + " channels";
}

Wrong check_rank(const Instruction& composite, int min_rank) {
  int rank = composite.operand(0).rank();
  if (rank >= min_rank) return std::nullopt;
  return "operand 0 has " + std::to_string(rank) + " dims, wants " + std::to_string(min_rank) + " or more";
}

Wrong check_same(const Instruction& composite) {
  const Type& x = composite.operand(0).type();
  return check_result(composite, 0, x.dtype, x.dims);
}

Wrong check_gelu(const Instruction& composite) {
  if (Wrong wrong = check_word(composite, "approximate", {"none", "tanh"})) return wrong;
  return check_same(composite);
}

Wrong check_softmax(const Instruction& composite) {
  if (Wrong wrong = check_dim(composite)) return wrong;
  return check_same(composite);
}

Wrong check_layer_norm(const Instruction& composite) {
  for (Wrong wrong : {check_dim(composite), check_epsilon(composite), check_stash(composite)})
    if (wrong) return wrong;
  for (int i = 1; i < composite.num_operands(); ++i)
    if (Wrong wrong = check_broadcasts(composite, i)) return wrong;
  const Type& x = composite.operand(0).type();
  bool has_statistics = composite.attributes().find("statistics") != nullptr;
  if (composite.num_results() != (has_statistics ? 3 : 1)) return "has statistics or two more results alone";
  std::vector<Dim> reduced = x.dims;
  std::fill(reduced.begin() + *attribute<int64_t>(composite, "dim"), reduced.end(), Dim(1));
  for (int i = 1; i < composite.num_results(); ++i)
    if (Wrong wrong = check_result(composite, i, *attribute<DType>(composite, "stash"), reduced))
      return wrong;
  return check_same(composite);
}

Wrong check_rms_norm(const Instruction& composite) {
  for (Wrong wrong : {check_dim(composite), check_epsilon(composite), check_stash(composite),
                      check_broadcasts(composite, 1)})
    if (wrong) return wrong;
  return check_result(composite, 0, composite.operand(1).dtype(), composite.operand(0).type().dims);
}

Wrong check_channel_norm(const Instruction& composite) {
  if (Wrong wrong = check_rank(composite, 2)) return wrong;
  for (Wrong wrong :
       {check_epsilon(composite), check_per_channel(composite, 1), check_per_channel(composite, 2)})
    if (wrong) return wrong;
  return check_same(composite);
}

Wrong check_group_norm(const Instruction& composite) {
  if (Wrong wrong = check_channel_norm(composite)) return wrong;
  for (Wrong wrong : {check_stash(composite), check_kind<int64_t>(composite, "groups", "a number of groups")})
    if (wrong) return wrong;
  int64_t groups = *attribute<int64_t>(composite, "groups");
  const Dim& channels = composite.operand(0).type().dims[1];
  if (groups > 0 && channels.is_static() && channels.value() % groups == 0) return std::nullopt;
  return "groups = " + std::to_string(groups) + " do not divide " + channels.extent.to_string() + " channels";
}

Wrong check_batch_norm(const Instruction& composite) {
  if (Wrong wrong = check_rank(composite, 2)) return wrong;
  for (Wrong wrong :
       {check_epsilon(composite), check_broadcasts(composite, 1), check_broadcasts(composite, 2)})
    if (wrong) return wrong;
  const Type& x = composite.operand(0).type();
  std::vector<Dim> reduced(x.dims.size(), Dim(1));
  reduced[1] = x.dims[1];
  for (int i : {1, 2})
    if (Wrong wrong = check_result(composite, i, x.dtype, reduced)) return wrong;
  return check_same(composite);
}

Wrong check_class_loss(const Instruction& composite) {
  if (Wrong wrong = check_rank(composite, 2)) return wrong;
  if (Wrong wrong = check_word(composite, "reduction", {"none", "sum", "mean"})) return wrong;
  const Type &scores = composite.operand(0).type(), &labels = composite.operand(1).type();
  std::vector<Dim> positions = scores.dims;
  positions.erase(positions.begin() + 1);
  if (!is_integer(labels.dtype) || labels.dims != positions)
    return "operand 1 is " + labels.to_string() + ", wants integers of " + list(positions);
  if (composite.num_operands() > 2)
    if (Wrong wrong = check_per_channel(composite, 2)) return wrong;
  if (composite.attributes().find("ignore_index"))
    if (Wrong wrong = check_kind<int64_t>(composite, "ignore_index", "an integer")) return wrong;
  bool has_none = attribute<Word>(composite, "reduction")->text == "none";
  return check_result(composite, 0, scores.dtype, has_none ? positions : std::vector<Dim>{});
}

Wrong check_cross_entropy(const Instruction& composite) {
  if (Wrong wrong = check_class_loss(composite)) return wrong;
  const Type& scores = composite.operand(0).type();
  bool has_logs = composite.attributes().find("log_probabilities") != nullptr;
  if (composite.num_results() != (has_logs ? 2 : 1)) return "has log_probabilities or a second result alone";
  return has_logs ? check_result(composite, 1, scores.dtype, scores.dims) : std::nullopt;
}

struct Form {
  const char* name;
  int min_operands, max_operands, min_results, max_results;
  Wrong (*check)(const Instruction&);
};

constexpr Form kForms[] = {
    {"softmax", 1, 1, 1, 1, check_softmax},
    {"log_softmax", 1, 1, 1, 1, check_softmax},
    {"gelu", 1, 1, 1, 1, check_gelu},
    {"silu", 1, 1, 1, 1, check_same},
    {"hard_swish", 1, 1, 1, 1, check_same},
    {"mish", 1, 1, 1, 1, check_same},
    {"layer_norm", 2, 3, 1, 3, check_layer_norm},
    {"rms_norm", 2, 2, 1, 1, check_rms_norm},
    {"instance_norm", 3, 3, 1, 1, check_channel_norm},
    {"group_norm", 3, 3, 1, 1, check_group_norm},
    {"batch_norm", 3, 3, 3, 3, check_batch_norm},
    {"negative_log_likelihood", 2, 3, 1, 1, check_class_loss},
    {"softmax_cross_entropy", 2, 3, 1, 2, check_cross_entropy},
};

std::string range(int min, int max) {
  return std::to_string(min) + (min == max ? "" : " to " + std::to_string(max));
}

Wrong check_counts(const Form& form, const Instruction& composite) {
  int operands = composite.num_operands(), results = composite.num_results();
  if (operands < form.min_operands || operands > form.max_operands)
    return "has " + std::to_string(operands) + " operands, wants " +
           range(form.min_operands, form.max_operands);
  if (results < form.min_results || results > form.max_results)
    return "has " + std::to_string(results) + " results, wants " + range(form.min_results, form.max_results);
  for (const Value& operand : composite.operands())
    if (!operand.type().is_tensor()) return "has an operand that is no tensor";
  if (!is_float(composite.operand(0).dtype())) return "operand 0 has no floats";
  return std::nullopt;
}

} // namespace

std::optional<std::string> check_composite(const Instruction& composite) {
  const Word* name = attribute<Word>(composite, "name");
  if (!name) return std::nullopt;
  const Form* form = std::find_if(std::begin(kForms), std::end(kForms),
                                  [&](const Form& each) { return name->text == each.name; });
  if (form == std::end(kForms)) return std::nullopt;
  Wrong wrong = check_counts(*form, composite);
  if (!wrong) wrong = form->check(composite);
  if (wrong) wrong = name->text + ": " + *wrong;
  return wrong;
}

} // namespace firn
