// See trained_tensors.h.
#include "compiler/training/trained_tensors.h"

#include "compiler/graph/composites.h"
#include "compiler/training/training_forms.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace firn::training {
namespace {

constexpr const char *kBiases = "BIASES", *kNorms = "NORMS";
constexpr const char* kLast = "LAST=";

bool carries_gradients(const Type& type) {
  return type.is_tensor() && (type.dtype == DType::F32 || type.dtype == DType::F64);
}

// A constant that patterns may name, trained or not.
struct Named {
  TrainedTensor tensor;
  size_t use = 0;          // number of the first instruction that reads it
  bool is_trained = false; // has floats and dims, and lies on the path to the loss
};

// The instructions between constants and the loss that hand gradients on.
class Path {
public:
  explicit Path(Value loss) { add(loss); }
  bool has(const Instruction* instruction) const { return seen_.count(instruction) != 0; }

private:
  void add(Value value) {
    std::vector<const Instruction*> open;
    auto reach = [&](Value each) {
      if (carries_gradients(each.type()) && seen_.insert(each.def).second) open.push_back(each.def);
    };
    reach(value);
    while (!open.empty()) {
      const Instruction* instruction = open.back();
      open.pop_back();
      if (instruction->is(Opcode::StopGradient)) continue;
      if (is_running_norm(*instruction)) { // statistics are measured, not trained
        for (int operand : {0, kNormScale, kNormBias}) reach(instruction->operand(operand));
        continue;
      }
      for (Value operand : instruction->operands()) reach(operand);
      for (int i = 0; i < instruction->num_regions(); ++i) reach_from(instruction->region(i), reach);
    }
  }

  // Regions may read values from outside.
  template <class Reach> static void reach_from(const Region& region, Reach reach) {
    for (const auto& instruction : region.instructions()) {
      if (is_running_norm(*instruction)) { // statistics are measured, not trained
        for (int operand : {0, kNormScale, kNormBias}) reach(instruction->operand(operand));
        continue;
      }
      for (Value operand : instruction->operands()) reach(operand);
      for (int i = 0; i < instruction->num_regions(); ++i) reach_from(instruction->region(i), reach);
    }
    for (Value result : region.results()) reach(result);
  }

  std::set<const Instruction*> seen_;
};

// At most a few movements are between the value and the additions that read it.
bool is_only_added(const Instruction& instruction, int movements = 4) {
  return !instruction.users().empty() && movements >= 0 &&
         std::all_of(instruction.users().begin(), instruction.users().end(), [&](const Instruction* user) {
           if (user->is(Opcode::Add)) return true;
           if (is_running_norm(*user)) return user->operand(kNormBias).def == &instruction;
           if (user->is(Opcode::Subtract)) return user->operand(0).def == &instruction;
           bool moves = user->is(Opcode::BroadcastInDim) || user->is(Opcode::Reshape);
           return moves && is_only_added(*user, movements - 1);
         });
}

bool is_norm(const Instruction& instruction) {
  constexpr const char* kNames[] = {"layer_norm", "rms_norm", "instance_norm", "group_norm", "batch_norm"};
  return is_running_norm(instruction) ||
         std::any_of(std::begin(kNames), std::end(kNames),
                     [&](const char* name) { return is_composite(instruction, name); });
}

// Whether a norm scales or shifts by the value, which at most a few movements bring into its shape.
bool is_of_norm(const Instruction& instruction, int movements = 4) {
  return movements >= 0 &&
         std::any_of(instruction.users().begin(), instruction.users().end(), [&](const Instruction* user) {
           if (is_norm(*user)) return user->operand(0).def != &instruction;
           bool moves = user->is(Opcode::BroadcastInDim) || user->is(Opcode::Reshape);
           return moves && is_of_norm(*user, movements - 1);
         });
}

class Choice {
public:
  Choice(const Function& main, Value prediction, const Selection& selection)
      : main_(main), path_(prediction), selection_(selection) {}

  Expected<std::vector<TrainedTensor>> run() {
    find_named();
    if (listed().empty())
      return usage_error("nothing of the model can be trained: the loss depends on no tensor of f32 or f64 "
                         "that has dims");
    for (const std::string& pattern : selection_.patterns)
      if (Result chosen = choose(pattern); !chosen) return chosen.error();
    std::vector<TrainedTensor> tensors;
    for (const Named& each : named_)
      if (each.is_trained && (selection_.patterns.empty() || chosen_.count(each.tensor.constant)))
        tensors.push_back(each.tensor);
    return tensors;
  }

private:
  void find_named() {
    std::map<const Instruction*, size_t> uses;
    size_t number = 0;
    for (const auto& instruction : main_.body().instructions()) {
      for (Value operand : instruction->operands()) uses.emplace(operand.def, number);
      ++number;
    }
    for (const auto& instruction : main_.body().instructions()) {
      if (!instruction->is(Opcode::Constant)) continue;
      const std::string& name = name_of_constant(*instruction);
      bool is_known = !selection_.initializers || selection_.initializers->count(name);
      if (name.empty() || !is_known || !names_.insert(name).second) continue;
      const Type& type = instruction->type();
      auto use = uses.find(instruction.get());
      named_.push_back({{name, instruction.get()},
                        use == uses.end() ? number : use->second,
                        carries_gradients(type) && type.rank() > 0 && path_.has(instruction.get()) &&
                            !selection_.frozen.count(instruction.get())});
    }
    std::stable_sort(named_.begin(), named_.end(),
                     [](const Named& a, const Named& b) { return a.use < b.use; });
  }

  std::string listed() const {
    std::string names;
    for (const Named& each : named_)
      if (each.is_trained) names += (names.empty() ? "'" : ", '") + each.tensor.name + "'";
    return names;
  }

  Result choose(const std::string& pattern) {
    if (pattern.starts_with(kLast)) return choose_last(pattern);
    const Named* refused = nullptr;
    bool is_found = false;
    for (const Named& each : named_) {
      bool is_meant = pattern == kBiases  ? is_only_added(*each.tensor.constant)
                      : pattern == kNorms ? is_of_norm(*each.tensor.constant)
                                          : matches_pattern(pattern, each.tensor.name);
      if (!is_meant) continue;
      if (!each.is_trained) {
        if (!refused) refused = &each;
        continue;
      }
      is_found = true;
      chosen_.insert(each.tensor.constant);
    }
    if (is_found) return {};
    if (!refused)
      return usage_error("'" + pattern + "' names no tensor that can be trained; there are " + listed());
    const Type& type = refused->tensor.constant->type();
    return usage_error(
        "'" + refused->tensor.name + "' is " + type.to_string() + ", which is not trained: " +
        (selection_.frozen.count(refused->tensor.constant) ? "it has an adapter, and stays as it is"
         : carries_gradients(type)
             ? "the loss does not depend on it, or it has no dims"
             : (is_float(type.dtype)
                    ? "floats narrower than f32 stay as they are"
                    : "quantised weights and integers stay as they are, but may have adapters")) +
        "; there are " + listed());
  }

  Result choose_last(const std::string& pattern) {
    const char *begin = pattern.data() + std::string_view(kLast).size(),
               *end = pattern.data() + pattern.size();
    int64_t left = 0;
    auto [parsed, error] = std::from_chars(begin, end, left);
    if (error != std::errc() || parsed != end || left <= 0)
      return usage_error("'" + pattern + "' wants a number of tensors, such as LAST=2");
    for (auto each = named_.rbegin(); each != named_.rend() && left > 0; ++each) {
      if (!each->is_trained) continue;
      chosen_.insert(each->tensor.constant);
      left -= each->tensor.constant->type().rank() >= 2;
    }
    return {};
  }

  const Function& main_;
  const Path path_;
  const Selection& selection_;
  std::vector<Named> named_;
  std::set<std::string> names_;
  std::set<const Instruction*> chosen_;
};

} // namespace

bool matches_pattern(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, resumed = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resumed = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resumed;
    } else {
      return false;
    }
  }
  return std::all_of(pattern.begin() + static_cast<std::ptrdiff_t>(p), pattern.end(),
                     [](char letter) { return letter == '*'; });
}

const std::string& name_of_constant(const Instruction& constant) {
  return constant.location().empty() ? constant.name() : constant.location();
}

Expected<std::vector<TrainedTensor>> choose_trained_tensors(const Function& main, Value prediction,
                                                            const Selection& selection) {
  return Choice(main, prediction, selection).run();
}

} // namespace firn::training
