// See adjoint_expression.h.
#include "compiler/passes/gradient/adjoint_expression.h"

#include "compiler/support/text_scanner.h"

namespace firn::gradient {
namespace {

class Emitter {
public:
  Emitter(GraphBuilder& builder, std::string_view text,
          const std::map<std::string, Value, std::less<>>& names, Value like)
      : b_(builder), s_("adjoints.def", text), names_(names), like_(like) {}

  Value run() {
    Value value = comparison();
    FIRN_CHECK(!s_.failed() && s_.at_end(), "broken expression of adjoints.def");
    return value;
  }

private:
  Value comparison() {
    Value value = sum();
    static constexpr std::pair<const char*, const char*> kDirections[] = {
        {"==", "eq"}, {"!=", "ne"}, {"<=", "le"}, {">=", "ge"}, {"<", "lt"}, {">", "gt"}};
    for (auto [token, direction] : kDirections)
      if (s_.accept(token)) return b_.compare(direction, value, sum());
    return value;
  }

  Value sum() {
    Value value = product();
    for (;;) {
      if (s_.accept("+"))
        value = b_.binary(Opcode::Add, value, product());
      else if (s_.accept("-"))
        value = b_.binary(Opcode::Subtract, value, product());
      else
        return value;
    }
  }

  Value product() {
    Value value = factor();
    for (;;) {
      if (s_.accept("*"))
        value = b_.binary(Opcode::Multiply, value, factor());
      else if (s_.accept("/"))
        value = b_.binary(Opcode::Divide, value, factor());
      else
        return value;
    }
  }

  Value factor() {
    if (s_.accept("-")) return negated();
    if (s_.accept("(")) {
      Value value = comparison();
      s_.expect(")");
      return value;
    }
    std::string word(s_.word());
    if (word.empty()) return number(1);
    if (s_.accept("(")) return call(word);
    auto found = names_.find(word);
    FIRN_CHECK(found != names_.end(), "unknown name '" + word + "' in adjoints.def");
    return found->second;
  }

  // A number behind a minus is a negative constant.
  Value negated() {
    TextScanner ahead = s_;
    double value = 0;
    return ahead.number(value) ? number(-1) : b_.unary(Opcode::Negate, factor());
  }

  Value number(double sign) {
    double value = 0;
    FIRN_CHECK(s_.number(value), "broken number in adjoints.def");
    return b_.splat_like(like_, sign * value);
  }

  Value call(const std::string& mnemonic) {
    auto opcode = parse_opcode(mnemonic);
    FIRN_CHECK(opcode && is_elementwise(*opcode), "unknown function '" + mnemonic + "' in adjoints.def");
    std::vector<Value> operands;
    do operands.push_back(comparison());
    while (s_.accept(","));
    s_.expect(")");
    return b_.op(*opcode, std::move(operands));
  }

  GraphBuilder& b_;
  TextScanner s_;
  const std::map<std::string, Value, std::less<>>& names_;
  Value like_;
};

} // namespace

Value emit_expression(GraphBuilder& builder, std::string_view text,
                      const std::map<std::string, Value, std::less<>>& names, Value like) {
  return Emitter(builder, text, names, like).run();
}

} // namespace firn::gradient
