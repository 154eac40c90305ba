// The state that all nodes of one import share: symbols, functions, warnings.
#include "compiler/frontend/onnx/import_state.h"

#include <algorithm>
#include <cctype>

namespace firn::onnx {
namespace {

// Words that the text form reads as operators and numbers of its own.
bool is_reserved(const std::string& word) {
  return word == "floordiv" || word == "mod" || word == "min" || word == "max" || word == "inf";
}

// Names of counts begin with this; word_of() lets no name of a model's dim begin so.
constexpr char kCountPrefix[] = "count_";

constexpr size_t kMaxWarnings = 100;

} // namespace

// Words of the text form have letters, digits and '_', and do not start with a digit.
std::string ImportState::word_of(const std::string& name) {
  std::string word;
  for (char c : name) word += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (word.empty() || std::isdigit(static_cast<unsigned char>(word[0])) || word.starts_with(kCountPrefix))
    word = "dim_" + word;
  return word;
}

bool ImportState::is_count(const Symbol& symbol) {
  return symbol.name.starts_with(kCountPrefix);
}

std::vector<Dim> ImportState::with_counts(std::vector<Dim> dims) {
  for (Dim& dim : dims) {
    std::vector<SymbolRef> symbols = dim.extent.symbols();
    dim.counted |=
        std::any_of(symbols.begin(), symbols.end(), [](const SymbolRef& s) { return is_count(*s); });
  }
  return dims;
}

ImportState::ImportState(const ImportOptions& options, LoadedModel& model, Module& module, ModelFacts& facts,
                         DiagnosticList& diagnostics)
    : options(options), model(model), module(module), facts(facts), diagnostics(diagnostics) {
  for (const auto& function : model.proto->functions())
    functions_.emplace(std::array{canonical_domain(function.domain()), function.name(), function.overload()},
                       &function);
}

SymbolRef ImportState::symbol(const std::string& name, DimRange range) {
  auto& symbol = symbols_[name];
  if (!symbol) symbol = add_symbol(word_of(name), range);
  return symbol;
}

SymbolRef ImportState::count_symbol(int64_t upper) {
  return add_symbol(kCountPrefix + std::to_string(module.symbols.size()), {0, upper});
}

SymbolRef ImportState::add_symbol(const std::string& word, DimRange range) {
  std::string unique = word;
  for (int suffix = 1; is_reserved(unique) || module.find_symbol(unique); ++suffix)
    unique = word + "_" + std::to_string(suffix);
  return module.symbols.emplace_back(std::make_shared<Symbol>(Symbol{unique, range.lower, range.upper}));
}

const wire::FunctionProto* ImportState::find_function(const wire::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  auto found = functions_.find({canonical_domain(node.domain()), node.op_type(), node.overload()});
  return found == functions_.end() ? nullptr : found->second;
}

bool ImportState::lacks_file(const Diagnostic& error) {
  if (error.fault != Fault::Usage) return false;
  if (missing_.insert(error.message).second) diagnostics.add(error);
  return true;
}

void ImportState::warn(std::string message) {
  auto& warnings = facts.warnings;
  if (warnings.size() < kMaxWarnings &&
      std::find(warnings.begin(), warnings.end(), message) == warnings.end())
    warnings.push_back(std::move(message));
}

bool erase_unused(Region& region) {
  bool changed = false;
  auto instructions = region.snapshot();
  for (size_t i = instructions.size(); i-- > 0;) {
    Instruction* instruction = instructions[i];
    if (instruction->is(Opcode::Parameter)) continue;
    if (!instruction->has_uses() && !instruction->attributes().flag("branch")) {
      region.erase(instruction);
      changed = true;
      continue;
    }
    for (int r = 0; r < instruction->num_regions(); ++r) changed |= erase_unused(instruction->region(r));
  }
  return changed;
}

} // namespace firn::onnx
