// Declarations: alignment, type, extents, initial values.
#include "compiler/ptx/parse_variable.h"

#include <bit>

namespace firn::ptx {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 32;

// ".ptr .global .align 16" says of a parameter where it points to.
void skip_pointer_facts(TokenStream& tokens) {
  if (!tokens.take(".ptr")) return;
  if (tokens.peek().kind == Token::Kind::Directive && !tokens.is(".align")) tokens.next();
  if (tokens.take(".align")) tokens.expect_integer("an alignment");
}

void parse_extents(TokenStream& tokens, Variable& variable) {
  variable.size = size_of(variable.type);
  while (tokens.take("[")) {
    int64_t extent = tokens.is("]") ? 0 : tokens.expect_integer("an extent");
    if (extent < 0 || (extent > 0 && variable.size > kMaxBytes / extent))
      return tokens.fail(error_at(variable.line, "'" + variable.name + "' is larger than 4 GiB"));
    variable.size *= extent;
    tokens.expect("]");
  }
}

void append(std::vector<uint8_t>& bytes, uint64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

// The bits of a number as one element of the type.
uint64_t element_bits(TokenStream& tokens, const Variable& variable) {
  bool negative = tokens.take("-");
  Token token = tokens.next();
  bool is_wide = size_of(variable.type) == 8;
  if (token.kind == Token::Kind::Integer && !is_float(variable.type))
    return negative ? 0 - token.value : token.value;
  if (token.kind == Token::Kind::Float32 && size_of(variable.type) == 4)
    return token.value ^ (negative ? 1u << 31 : 0);
  if (token.kind == Token::Kind::Float64 && is_wide) return token.value ^ (negative ? uint64_t{1} << 63 : 0);
  if (token.kind == Token::Kind::Float64 && size_of(variable.type) == 4) {
    auto value = static_cast<float>(std::bit_cast<double>(token.value));
    return std::bit_cast<uint32_t>(negative ? -value : value);
  }
  tokens.fail(error_at(token.line, "found '" + std::string(token.text) + "', wanted a value of type " +
                                       std::string(name_of(variable.type))));
  return 0;
}

void parse_address(TokenStream& tokens, Variable& variable) {
  Variable::Address address{static_cast<int64_t>(variable.values.size()), "", 0, false};
  address.is_generic = tokens.is("generic") && tokens.is("(", 1);
  if (address.is_generic) tokens.next(), tokens.next();
  address.name = tokens.expect_word("the name of a variable");
  if (address.is_generic) tokens.expect(")");
  if (tokens.take("+"))
    address.offset = tokens.expect_integer("an offset");
  else if (tokens.is("-"))
    address.offset = tokens.expect_integer("an offset");
  if (size_of(variable.type) != 8)
    tokens.fail(unsupported_at(variable.line,
                               "an address in a variable of type " + std::string(name_of(variable.type))));
  variable.addresses.push_back(std::move(address));
  append(variable.values, 0, 8);
}

void parse_value(TokenStream& tokens, Variable& variable) {
  if (tokens.peek().kind == Token::Kind::Word)
    parse_address(tokens, variable);
  else
    append(variable.values, element_bits(tokens, variable), size_of(variable.type));
}

void parse_values(TokenStream& tokens, Variable& variable) {
  if (!tokens.take("{")) return parse_value(tokens, variable);
  while (tokens.ok() && !tokens.take("}")) {
    if (tokens.is("{"))
      return tokens.fail(unsupported_at(tokens.peek().line, "nested braces in the values of a variable"));
    parse_value(tokens, variable);
    if (!tokens.is("}")) tokens.expect(",");
  }
}

} // namespace

std::optional<Space> space_named(std::string_view directive) {
  if (directive == ".global") return Space::Global;
  if (directive == ".shared") return Space::Shared;
  if (directive == ".local") return Space::Local;
  if (directive == ".param") return Space::Param;
  if (directive == ".const") return Space::Const;
  if (directive == ".reg") return Space::Register;
  return std::nullopt;
}

Type parse_type(TokenStream& tokens) {
  if (tokens.peek().kind == Token::Kind::Directive)
    if (auto type = type_named(tokens.peek().text.substr(1))) {
      tokens.next();
      return *type;
    }
  tokens.fail_here("a type");
  return Type::B8;
}

Variable parse_variable(TokenStream& tokens, Space space) {
  Variable variable;
  variable.space = space;
  variable.line = tokens.peek().line;
  if (tokens.take(".align")) variable.align = tokens.expect_integer("an alignment");
  variable.type = parse_type(tokens);
  skip_pointer_facts(tokens);
  variable.align = std::max<int64_t>(variable.align, size_of(variable.type));
  if (!std::has_single_bit(static_cast<uint64_t>(variable.align)))
    tokens.fail(error_at(variable.line, "found an alignment of " + std::to_string(variable.align) +
                                            ", wanted a power of two"));
  variable.name = tokens.expect_word("the name of a variable");
  parse_extents(tokens, variable);
  if (tokens.take("=")) parse_values(tokens, variable);
  auto given = static_cast<int64_t>(variable.values.size());
  if (variable.size == 0) variable.size = given;
  if (given > variable.size)
    tokens.fail(error_at(variable.line, "'" + variable.name + "' has more values than elements"));
  return variable;
}

} // namespace firn::ptx
