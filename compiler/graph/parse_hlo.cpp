// The parser of the graph IR's text form. Every error names line and column; nothing in the text can crash
// it.
#include "compiler/graph/hlo_text.h"

#include "compiler/graph/function_type.h"
#include "compiler/graph/parse_literal.h"
#include "compiler/graph/parse_type.h"
#include "compiler/support/text_scanner.h"

namespace firn {
namespace {

constexpr int kMaxRegionDepth = 64;

class Parser {
public:
  Parser(std::string file, std::string_view text, const LiteralTable& literals)
      : s_(std::move(file), text), literals_(literals) {}

  Expected<std::unique_ptr<Module>> run() {
    s_.expect("module");
    s_.expect("@");
    module_ = std::make_unique<Module>(name());
    s_.expect("{");
    while (!s_.failed() && s_.accept("symbol")) parse_symbol();
    if (s_.accept("parameters")) module_->parameters = quoted_list();
    while (!s_.failed() && (s_.next_is("private") || s_.next_is("func"))) parse_function();
    s_.expect("}");
    for (const NamedParameters& each : named_) resolve(each);
    if (!s_.failed() && !s_.at_end()) s_.fail("text after the module");
    if (s_.failed()) return s_.error();
    return std::move(module_);
  }

private:
  // A gradient's parameters as they are written.
  struct NamedParameters {
    Function* function;
    std::vector<std::string> names;
  };

  // The names of a region; `outer` has those of the enclosing one if the region may use them.
  struct Scope {
    const Scope* outer = nullptr;
    std::map<std::string, Instruction*> names;

    Instruction* find(const std::string& name) const {
      for (const Scope* scope = this; scope; scope = scope->outer)
        if (auto found = scope->names.find(name); found != scope->names.end()) return found->second;
      return nullptr;
    }
  };

  std::string name() {
    std::string text;
    if (s_.quoted(text)) return text;
    text = s_.word_with("$");
    if (text.empty()) s_.fail("expected a name");
    return text;
  }

  void parse_symbol() {
    auto symbol = std::make_shared<Symbol>();
    if (!s_.quoted(symbol->name)) symbol->name = s_.word();
    if (symbol->name.empty()) s_.fail("expected a symbol's name");
    s_.expect("in");
    s_.expect("[");
    if (!s_.integer(symbol->lower)) s_.fail("expected the lower bound");
    s_.expect(",");
    if (!s_.accept("inf") && !s_.integer(symbol->upper)) s_.fail("expected the upper bound");
    s_.expect("]");
    if (symbol->lower > symbol->upper) s_.fail("symbol without values");
    if (module_->find_symbol(symbol->name)) s_.fail("symbol '" + symbol->name + "' is defined twice");
    module_->symbols.push_back(std::move(symbol));
  }

  void define(Scope& scope, const std::string& name, Instruction* instruction) {
    if (!scope.names.emplace(name, instruction).second) s_.fail("'%" + name + "' is defined twice");
  }

  void parse_parameters(Region& region, Scope& scope) {
    s_.expect("(");
    if (s_.accept(")")) return;
    do {
      s_.expect("%");
      std::string parameter = name();
      s_.expect(":");
      Type type = parse_type(s_, *module_);
      if (s_.failed()) return;
      define(scope, parameter, region.add_parameter(std::move(type), parameter));
    } while (s_.accept(","));
    s_.expect(")");
  }

  std::vector<std::string> quoted_list() {
    std::vector<std::string> values;
    std::string text;
    s_.expect("[");
    while (s_.quoted(text)) {
      values.push_back(text);
      if (!s_.accept(",")) break;
    }
    s_.expect("]");
    return values;
  }

  // A number in the range of int, for places in lists.
  int number() {
    int64_t value = 0;
    if (!s_.integer(value)) s_.fail("expected a number");
    return static_cast<int>(std::max<int64_t>(-1, std::min<int64_t>(value, 1 << 20)));
  }

  // gradient @f [from i] wrt a, 2 [keeping i, j] [seedable] [straight_through]
  void parse_gradient(Function& function) {
    s_.expect("gradient");
    s_.expect("@");
    GradientOf& gradient = function.gradient.emplace();
    gradient.callee = name();
    if (s_.accept("from")) gradient.from = number();
    s_.expect("wrt");
    std::vector<std::string> names;
    do {
      std::string parameter;
      if (!s_.quoted(parameter)) parameter = s_.word_with("$");
      if (parameter.empty()) s_.fail("expected a parameter's name or number");
      names.push_back(std::move(parameter));
    } while (!s_.failed() && s_.accept(","));
    if (s_.accept("keeping")) {
      do gradient.keeping.push_back(number());
      while (!s_.failed() && s_.accept(","));
    }
    gradient.seedable = s_.accept("seedable");
    gradient.straight_through = s_.accept("straight_through");
    named_.push_back({&function, std::move(names)});
  }

  // Numbers the parameters that a gradient names, once all functions are known.
  void resolve(const NamedParameters& named) {
    for (const std::string& parameter : named.names) {
      auto found = find_parameter(*module_, named.function->gradient->callee, parameter);
      if (!found) s_.fail("@" + named.function->name() + ": " + found.error().message);
      if (s_.failed()) return;
      named.function->gradient->wrt.push_back(*found);
    }
  }

  void parse_function() {
    const bool is_private = s_.accept("private");
    s_.expect("func");
    s_.expect("@");
    std::string function_name = name();
    if (module_->find(function_name)) s_.fail("function '" + function_name + "' is defined twice");
    if (s_.failed()) return;
    Function& function = module_->add_function(function_name);
    function.is_private = is_private;
    if (s_.accept("=")) return parse_gradient(function);
    Scope scope;
    parse_parameters(function.body(), scope);
    s_.expect("->");
    s_.expect("(");
    std::vector<Type> declared;
    if (!s_.accept(")")) {
      do declared.push_back(parse_type(s_, *module_));
      while (s_.accept(","));
      s_.expect(")");
    }
    if (s_.accept("inputs")) function.parameter_names = quoted_list();
    if (s_.accept("outputs")) function.result_names = quoted_list();
    if (s_.accept("aliases")) {
      s_.expect("[");
      for (int64_t value = 0; s_.integer(value);) {
        function.aliases.push_back(
            static_cast<int>(std::max<int64_t>(-2, std::min<int64_t>(value, 1 << 20))));
        if (!s_.accept(",")) break;
      }
      s_.expect("]");
    }
    if (s_.accept("by")) {
      s_.expect("@");
      function.adjoint_rule = name();
    }
    if (int64_t bytes = 0; s_.accept("tape")) {
      if (!s_.integer(bytes) || bytes < 0) s_.fail("expected the bytes of a tape");
      function.tape_bytes = bytes;
    }
    parse_body(function.body(), scope, 0);
    const auto& results = function.body().results();
    bool same = results.size() == declared.size();
    for (size_t i = 0; same && i < results.size(); ++i) same = results[i].type() == declared[i];
    if (!s_.failed() && !same) s_.fail("the function's declared results differ from what it returns");
  }

  void parse_body(Region& region, Scope& scope, int depth) {
    if (depth > kMaxRegionDepth) s_.fail("regions nested too deeply");
    s_.expect("{");
    while (!s_.failed() && !s_.accept("return")) parse_instruction(region, scope, depth);
    std::vector<Value> results;
    if (s_.next_is("%")) {
      do results.push_back(parse_value(scope));
      while (s_.accept(","));
    }
    s_.expect("}");
    if (!s_.failed()) region.set_results(std::move(results));
  }

  Value parse_value(const Scope& scope) {
    s_.expect("%");
    std::string wanted = name();
    Instruction* found = scope.find(wanted);
    int64_t index = 0;
    if (s_.accept("#") && !s_.integer(index)) s_.fail("expected a result number");
    if (!found) {
      s_.fail("'%" + wanted + "' is not defined");
      return {};
    }
    if (index < 0 || index >= found->num_results()) {
      s_.fail("'%" + wanted + "' has no result " + std::to_string(index));
      return {};
    }
    return {found, static_cast<int>(index)};
  }

  void parse_instruction(Region& region, Scope& scope, int depth) {
    s_.expect("%");
    std::string result_name = name();
    int64_t num_results = 1;
    if (s_.accept(":") && (!s_.integer(num_results) || num_results < 0 || num_results > 4096))
      s_.fail("broken result count");
    s_.expect("=");
    std::string mnemonic(s_.word());
    auto opcode = parse_opcode(mnemonic);
    if (!opcode || opcode == Opcode::Parameter) s_.fail("unknown op '" + mnemonic + "'");
    if (s_.failed()) return;
    std::vector<Value> operands;
    if (s_.next_is("%")) {
      do operands.push_back(parse_value(scope));
      while (!s_.failed() && s_.accept(","));
    }
    if (s_.failed()) return;
    Instruction* made =
        region.append(*opcode, std::move(operands), std::vector<Type>(static_cast<size_t>(num_results)));
    LiteralText literal;
    if (*opcode == Opcode::Constant) literal = parse_literal_text(s_);
    if (s_.accept("{")) parse_attributes(made->attributes());
    if (s_.accept("region")) {
      do {
        Region& nested = made->add_region();
        Scope inner{has_trait(*opcode, Captures) ? &scope : nullptr, {}};
        parse_parameters(nested, inner);
        parse_body(nested, inner, depth + 1);
      } while (!s_.failed() && s_.accept(",") && s_.expect("region"));
    }
    s_.expect(":");
    if (num_results != 1) s_.expect("(");
    for (int64_t i = 0; i < num_results && !s_.failed(); ++i) {
      if (i) s_.expect(",");
      made->set_type(parse_type(s_, *module_), static_cast<int>(i));
    }
    if (num_results != 1) s_.expect(")");
    if (s_.accept("loc(")) {
      std::string location;
      if (!s_.quoted(location)) s_.fail("expected a location");
      s_.expect(")");
      made->set_location(location);
    }
    if (s_.failed()) return;
    made->set_name(result_name);
    if (*opcode == Opcode::Constant) {
      made->set_literal(make_literal(s_, literal, made->type(), literals_));
      if (!literal.in_place) made->set_location(literal.name);
    }
    define(scope, result_name, made);
  }

  void parse_attributes(Attributes& attributes) {
    if (s_.accept("}")) return;
    do {
      std::string key(s_.word());
      if (key.empty() || attributes.has(key)) s_.fail("expected an attribute's name, each once");
      s_.expect("=");
      if (s_.failed()) return;
      attributes.set(key, key == "window" ? Attribute(parse_window(s_)) : parse_attribute());
    } while (!s_.failed() && s_.accept(","));
    s_.expect("}");
  }

  // A number with point, exponent, inf or nan is a double; else an integer.
  Attribute parse_number() {
    TextScanner ahead = s_;
    std::string text(ahead.word_with("+-"));
    bool real = text.find_first_of(".ein") != text.npos;
    int64_t integer = 0;
    double number = 0;
    if (real ? !s_.number(number) : !s_.integer(integer)) s_.fail("expected a number");
    if (real) return number;
    return integer;
  }

  Attribute parse_attribute() {
    std::string text;
    if (s_.quoted(text)) return text;
    if (s_.accept("true")) return true;
    if (s_.accept("false")) return false;
    if (s_.next_is("inf") || s_.next_is("nan")) return parse_number();
    if (s_.accept("type")) return parse_type(s_, *module_);
    if (s_.accept("[.]")) return std::vector<double>{};
    if (s_.accept("[")) return parse_list();
    std::string word(s_.word());
    if (auto dtype = parse_dtype(word)) return *dtype;
    if (!word.empty()) return Word{word};
    return parse_number();
  }

  Attribute parse_list() {
    std::vector<int64_t> integers;
    std::vector<double> numbers;
    if (s_.accept("]")) return integers;
    do {
      Attribute value = parse_number();
      if (auto* integer = std::get_if<int64_t>(&value)) integers.push_back(*integer);
      if (auto* number = std::get_if<double>(&value)) numbers.push_back(*number);
    } while (!s_.failed() && s_.accept(","));
    s_.expect("]");
    if (!integers.empty() && !numbers.empty()) s_.fail("list mixes integers and floats");
    if (numbers.empty()) return integers;
    return numbers;
  }

  TextScanner s_;
  const LiteralTable& literals_;
  std::unique_ptr<Module> module_;
  std::vector<NamedParameters> named_;
};

} // namespace

Expected<std::unique_ptr<Module>> parse_module(std::string file, std::string_view text,
                                               const LiteralTable& literals) {
  return Parser(std::move(file), text, literals).run();
}

} // namespace firn
