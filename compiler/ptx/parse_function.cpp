// Functions of PTX. Names of inner scopes are made unique by the number of the scope.
#include "compiler/ptx/parse_function.h"

#include "compiler/ptx/parse_variable.h"

#include <algorithm>
#include <map>

namespace firn::ptx {
namespace {

class FunctionParser {
public:
  FunctionParser(TokenStream& tokens, Function& function) : tokens_(tokens), function_(function) {
    scopes_.push_back({-1, {}, {}});
    for (const Variable& parameter : function.parameters)
      scopes_[0].variables[parameter.name] = parameter.name;
    for (const Variable& result : function.results) scopes_[0].variables[result.name] = result.name;
  }

  void run() {
    tokens_.expect("{");
    parse_scope();
    resolve_labels();
  }

private:
  struct Scope {
    int parent;
    std::map<std::string, int, std::less<>> registers;
    std::map<std::string, std::string, std::less<>> variables; // and labels; to unique names
  };
  // A symbol that may be a label of a scope around it: known at the end of the function.
  struct Reference {
    size_t instruction, operand;
    int scope;
  };

  void parse_scope() {
    while (tokens_.ok() && !tokens_.take("}")) parse_statement();
  }

  void parse_statement() {
    if (tokens_.take("{")) {
      int outer = scope_;
      scopes_.push_back({outer, {}, {}});
      scope_ = static_cast<int>(scopes_.size()) - 1;
      parse_scope();
      scope_ = outer;
    } else if (tokens_.peek().kind == Token::Kind::Directive) {
      parse_directive();
    } else if (tokens_.peek().kind == Token::Kind::Word && tokens_.is(":", 1)) {
      parse_label();
    } else if (!tokens_.take(";")) {
      parse_instruction();
    }
  }

  std::string unique(const std::string& name) const {
    return scope_ == 0 ? name : name + "#" + std::to_string(scope_);
  }

  void parse_label() {
    int line = tokens_.peek().line;
    std::string name(tokens_.next().text);
    tokens_.next();
    if (!scopes_[scope_].variables.emplace(name, unique(name)).second)
      tokens_.fail(error_at(line, "'" + name + "' is declared twice"));
    function_.labels.emplace_back(unique(name), static_cast<int>(function_.body.size()));
  }

  void parse_directive() {
    if (tokens_.is(".loc") || tokens_.is(".file")) return tokens_.skip_line();
    if (tokens_.take(".pragma")) {
      while (tokens_.ok() && !tokens_.take(";")) tokens_.next();
      return;
    }
    auto space = space_named(tokens_.peek().text);
    if (!space) return tokens_.fail_here("an instruction or a declaration");
    tokens_.next();
    do {
      if (*space == Space::Register)
        parse_registers();
      else
        declare_variable(parse_variable(tokens_, *space));
    } while (tokens_.ok() && tokens_.take(","));
    tokens_.expect(";");
  }

  void parse_registers() {
    if (!tokens_.is(",", 0) && tokens_.peek().kind == Token::Kind::Directive)
      register_type_ = parse_type(tokens_);
    int line = tokens_.peek().line;
    std::string name = tokens_.expect_word("the name of a register");
    if (!tokens_.take("<")) return declare_register(name, line);
    int64_t count = tokens_.expect_integer("a number of registers");
    tokens_.expect(">");
    if (count < 0 || count > 100000) return tokens_.fail(error_at(line, "more than 100000 registers"));
    for (int64_t i = 0; i < count; ++i) declare_register(name + std::to_string(i), line);
  }

  void declare_register(const std::string& name, int line) {
    int index = static_cast<int>(function_.registers.size());
    if (!scopes_[scope_].registers.emplace(name, index).second)
      tokens_.fail(error_at(line, "'" + name + "' is declared twice"));
    function_.registers.push_back(register_type_);
  }

  void declare_variable(Variable variable) {
    std::string name = variable.name;
    variable.name = unique(name);
    if (!scopes_[scope_].variables.emplace(name, variable.name).second)
      tokens_.fail(error_at(variable.line, "'" + name + "' is declared twice"));
    function_.variables.push_back(std::move(variable));
  }

  void parse_instruction() {
    Instruction instruction;
    instruction.line = tokens_.peek().line;
    if (tokens_.take("@")) {
      instruction.guard_is_negated = tokens_.take("!");
      std::string name = tokens_.expect_word("a predicate");
      const int* index = find_register(name);
      if (tokens_.ok() && (!index || function_.registers[*index] != Type::Pred))
        tokens_.fail(error_at(instruction.line, "found '" + name + "', wanted a register of type pred"));
      instruction.guard = index ? *index : 0;
    }
    split_opcode(tokens_.expect_word("an instruction"), instruction);
    while (tokens_.ok() && !tokens_.is(";")) {
      instruction.operands.push_back(parse_operand());
      note_reference(instruction.operands.back(), instruction.operands.size() - 1);
      if (!tokens_.is(";")) tokens_.expect(",");
    }
    tokens_.expect(";");
    function_.body.push_back(std::move(instruction));
  }

  void note_reference(const Operand& operand, size_t index) {
    if (operand.kind == Operand::Kind::Symbol) references_.push_back({function_.body.size(), index, scope_});
  }

  static void split_opcode(const std::string& text, Instruction& instruction) {
    size_t begin = text.find('.');
    instruction.opcode = text.substr(0, begin);
    while (begin != std::string::npos) {
      size_t end = text.find('.', begin + 1);
      instruction.words.push_back(text.substr(begin + 1, end == std::string::npos ? end : end - begin - 1));
      begin = end;
    }
  }

  Operand parse_operand() {
    Operand operand = parse_single_operand();
    if (!tokens_.take("|")) return operand;
    Operand pair;
    pair.kind = Operand::Kind::Pair;
    pair.elements = {std::move(operand), parse_single_operand()};
    return pair;
  }

  Operand parse_single_operand() {
    Operand operand;
    if (tokens_.take("{")) return parse_list(Operand::Kind::Vector, "}");
    if (tokens_.take("(")) return parse_list(Operand::Kind::Group, ")");
    if (tokens_.take("[")) return parse_address();
    operand.is_negated = tokens_.take("!");
    bool negative = tokens_.take("-");
    Token token = tokens_.next();
    operand.value = static_cast<int64_t>(token.value);
    if (token.kind == Token::Kind::Word && !negative) return parse_name(token, operand.is_negated);
    if (token.kind == Token::Kind::Integer) {
      operand.kind = Operand::Kind::Integer;
      if (negative) operand.value = static_cast<int64_t>(0 - token.value);
    } else if (token.kind == Token::Kind::Float32) {
      operand.kind = Operand::Kind::Float32;
      if (negative) operand.value ^= int64_t{1} << 31;
    } else if (token.kind == Token::Kind::Float64) {
      operand.kind = Operand::Kind::Float64;
      if (negative) operand.value = static_cast<int64_t>(token.value ^ (uint64_t{1} << 63));
    } else {
      tokens_.fail(error_at(token.line, "found '" + std::string(token.text) + "', wanted an operand"));
    }
    return operand;
  }

  Operand parse_list(Operand::Kind kind, std::string_view end) {
    Operand list;
    list.kind = kind;
    while (tokens_.ok() && !tokens_.take(end)) {
      list.elements.push_back(parse_operand());
      if (!tokens_.is(end)) tokens_.expect(",");
    }
    return list;
  }

  Operand parse_address() {
    Operand address;
    address.kind = Operand::Kind::Address;
    if (tokens_.peek().kind == Token::Kind::Word) {
      address.elements.push_back(parse_name(tokens_.next(), false));
      address.value = address.elements[0].value;
    }
    if (tokens_.take("+") || address.elements.empty() || tokens_.is("-"))
      address.value += tokens_.expect_integer("an offset");
    tokens_.expect("]");
    return address;
  }

  Operand parse_name(const Token& token, bool is_negated) {
    Operand operand;
    operand.is_negated = is_negated;
    std::string name(token.text);
    if (name == "_") return operand;
    if (const int* index = find_register(name)) {
      operand.kind = Operand::Kind::Register;
      operand.index = *index;
      return operand;
    }
    operand.kind = Operand::Kind::Symbol;
    operand.name = resolved(name, scope_);
    if (tokens_.is("+") && tokens_.peek(1).kind == Token::Kind::Integer) {
      tokens_.next();
      operand.value = tokens_.expect_integer("an offset");
    }
    return operand;
  }

  const int* find_register(std::string_view name) const {
    for (int scope = scope_; scope >= 0; scope = scopes_[scope].parent) {
      auto found = scopes_[scope].registers.find(name);
      if (found != scopes_[scope].registers.end()) return &found->second;
    }
    return nullptr;
  }

  std::string resolved(const std::string& name, int scope) const {
    for (; scope >= 0; scope = scopes_[scope].parent) {
      auto found = scopes_[scope].variables.find(name);
      if (found != scopes_[scope].variables.end()) return found->second;
    }
    return name;
  }

  // Labels may stand after the branch to them.
  void resolve_labels() {
    if (!tokens_.ok()) return;
    for (const Reference& reference : references_) {
      Operand& operand = function_.body[reference.instruction].operands[reference.operand];
      operand.name = resolved(operand.name, reference.scope);
    }
  }

  TokenStream& tokens_;
  Function& function_;
  std::vector<Scope> scopes_;
  std::vector<Reference> references_;
  int scope_ = 0;
  Type register_type_ = Type::B32;
};

std::vector<Variable> parse_parameters(TokenStream& tokens) {
  std::vector<Variable> parameters;
  if (!tokens.take("(")) return parameters;
  while (tokens.ok() && !tokens.take(")")) {
    int line = tokens.peek().line;
    if (tokens.take(".reg")) tokens.fail(unsupported_at(line, "parameters in registers"));
    tokens.expect(".param");
    parameters.push_back(parse_variable(tokens, Space::Param));
    if (!tokens.is(")")) tokens.expect(",");
  }
  return parameters;
}

std::array<int64_t, 3> parse_threads(TokenStream& tokens) {
  std::array<int64_t, 3> threads{1, 1, 1};
  for (int i = 0; i == 0 || (i < 3 && tokens.take(",")); ++i)
    threads[i] = tokens.expect_integer("a number of threads");
  return threads;
}

void parse_limits(TokenStream& tokens, Function& function) {
  while (tokens.ok() && tokens.peek().kind == Token::Kind::Directive) {
    if (tokens.take(".maxntid")) {
      function.max_threads = parse_threads(tokens);
    } else if (tokens.take(".reqntid")) {
      function.required_threads = parse_threads(tokens);
    } else if (tokens.take(".minnctapersm") || tokens.take(".maxnreg")) {
      tokens.expect_integer("a number");
    } else if (tokens.take(".pragma")) {
      while (tokens.ok() && !tokens.take(";")) tokens.next();
    } else if (!tokens.take(".noreturn")) {
      tokens.fail_here("a body or a limit of launches");
    }
  }
}

} // namespace

Function parse_function(TokenStream& tokens, bool is_entry) {
  Function function;
  function.is_entry = is_entry;
  function.line = tokens.peek().line;
  if (!is_entry) function.results = parse_parameters(tokens);
  function.name = tokens.expect_word("the name of a function");
  function.parameters = parse_parameters(tokens);
  parse_limits(tokens, function);
  if (tokens.take(";")) return function;
  function.is_defined = true;
  FunctionParser(tokens, function).run();
  return function;
}

} // namespace firn::ptx
