// The outermost level of a PTX module.
#include "compiler/ptx/parser.h"

#include "compiler/ptx/parse_function.h"
#include "compiler/ptx/parse_variable.h"

#include <bit>

namespace firn::ptx {
namespace {

void skip_section(TokenStream& tokens) {
  while (tokens.ok() && !tokens.is("{") && tokens.peek().kind != Token::Kind::End) tokens.next();
  int depth = 0;
  do {
    depth += tokens.is("{") - tokens.is("}");
    if (tokens.peek().kind == Token::Kind::End) return tokens.fail_here("the end of a section");
    tokens.next();
  } while (tokens.ok() && depth > 0);
}

void parse_version(TokenStream& tokens) {
  Token version = tokens.next();
  if (version.kind != Token::Kind::Float64 || std::bit_cast<double>(version.value) < 7)
    tokens.fail(
        error_at(version.line, "found version '" + std::string(version.text) + "', wanted 7.0 or later"));
}

void parse_target(TokenStream& tokens, Unit& unit) {
  unit.target = tokens.expect_word("a target");
  while (tokens.take(",")) tokens.expect_word("an option of the target");
}

void parse_address_size(TokenStream& tokens) {
  int line = tokens.peek().line;
  if (tokens.expect_integer("64") != 64) tokens.fail(unsupported_at(line, "addresses that have not 64 bits"));
}

void parse_declaration(TokenStream& tokens, Unit& unit) {
  bool is_external = false;
  while (tokens.is(".visible") || tokens.is(".extern") || tokens.is(".weak") || tokens.is(".common"))
    is_external |= tokens.next().text == ".extern";
  if (tokens.is(".entry") || tokens.is(".func")) {
    bool is_entry = tokens.next().text == ".entry";
    unit.functions.push_back(parse_function(tokens, is_entry));
    return;
  }
  auto space = space_named(tokens.peek().text);
  if (!space || *space == Space::Register || *space == Space::Param || *space == Space::Local)
    return tokens.fail_here("a declaration");
  tokens.next();
  do {
    Variable variable = parse_variable(tokens, *space);
    variable.is_external = is_external;
    unit.variables.push_back(std::move(variable));
  } while (tokens.ok() && tokens.take(","));
  tokens.expect(";");
}

void parse_item(TokenStream& tokens, Unit& unit) {
  if (tokens.take(".version")) return parse_version(tokens);
  if (tokens.take(".target")) return parse_target(tokens, unit);
  if (tokens.take(".address_size")) return parse_address_size(tokens);
  if (tokens.is(".file") || tokens.is(".loc")) return tokens.skip_line();
  if (tokens.is(".section")) return skip_section(tokens);
  if (tokens.take(".pragma")) {
    while (tokens.ok() && !tokens.take(";")) tokens.next();
    return;
  }
  if (!tokens.take(";")) parse_declaration(tokens, unit);
}

} // namespace

Expected<Unit> parse_unit(std::string_view text) {
  auto read = tokenize(text);
  if (!read) return read.error();
  TokenStream tokens(std::move(*read));
  Unit unit;
  while (tokens.ok() && tokens.peek().kind != Token::Kind::End) parse_item(tokens, unit);
  if (!tokens.ok()) return tokens.error();
  if (unit.target.empty()) return error_at(1, "the module names no target");
  return unit;
}

} // namespace firn::ptx
