// Printing of the graph IR.
#include "compiler/graph/hlo_text.h"

#include "compiler/graph/integer_text.h"
#include "compiler/support/text_scanner.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <set>
#include <unordered_map>

namespace firn {
namespace {

bool is_plain_name(const std::string& name) {
  if (name.empty()) return false;
  for (char c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.' && c != '$') return false;
  return true;
}

template <class T> std::string print_bits(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  char text[24];
  std::snprintf(text, sizeof text, "0x%0*llx", static_cast<int>(2 * sizeof value),
                static_cast<unsigned long long>(bits));
  return text;
}

// Decimals that read back to the same bits; T is float or double.
template <class T> std::string print_float(T value) {
  if (std::isnan(value)) {
    T plain = static_cast<T>(NAN);
    return std::memcmp(&value, &plain, sizeof value) == 0 ? "nan" : print_bits(value);
  }
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char text[40];
  std::snprintf(text, sizeof text, sizeof value == 8 ? "%.17g" : "%.9g", static_cast<double>(value));
  return text;
}

template <class T> std::string print_complex(const Literal& literal, int64_t i) {
  T parts[2];
  std::memcpy(parts, literal.bytes().data() + static_cast<size_t>(i) * sizeof parts, sizeof parts);
  return "(" + print_float(parts[0]) + ", " + print_float(parts[1]) + ")";
}

// A float of 32 or fewer bits: its value as f32 says it, except for NaNs other than the default one.
std::string print_narrow_float(const Literal& literal, int64_t i) {
  auto value = static_cast<float>(literal.get_double(i));
  if (!std::isnan(value)) return print_float(value);
  size_t bytes = static_cast<size_t>(bit_width(literal.dtype())) / 8;
  uint64_t bits = 0, plain = 0;
  std::memcpy(&bits, literal.bytes().data() + static_cast<size_t>(i) * bytes, bytes);
  std::memcpy(&plain, Literal::scalar(literal.dtype(), NAN)->bytes().data(), bytes);
  if (bits == plain) return "nan";
  return bytes == 4   ? print_bits(static_cast<uint32_t>(bits))
         : bytes == 2 ? print_bits(static_cast<uint16_t>(bits))
                      : print_bits(static_cast<uint8_t>(bits));
}

std::string print_element(const Literal& literal, int64_t i) {
  switch (DType dtype = literal.dtype(); dtype) {
  case DType::String: return quote(literal.string_values()[static_cast<size_t>(i)]);
  case DType::Bool: return literal.get_int(i) ? "true" : "false";
  case DType::C64: return print_complex<float>(literal, i);
  case DType::C128: return print_complex<double>(literal, i);
  case DType::F64: {
    double value = 0;
    std::memcpy(&value, literal.bytes().data() + static_cast<size_t>(i) * sizeof value, sizeof value);
    return print_float(value);
  }
  default: return is_integer(dtype) ? integer_text(literal, i) : print_narrow_float(literal, i);
  }
}

bool prints_in_place(const Literal& literal) {
  return !literal.is_opaque() && literal.num_elements() <= kInlineLiteralElements;
}

class Printer {
public:
  std::string print(const Module& module) {
    out_ = "module @" + printed_name(module.name()) + " {\n";
    for (const SymbolRef& symbol : module.symbols) {
      out_ += "  symbol " + word_or_quoted(symbol->name) + " in [" + std::to_string(symbol->lower) + ", ";
      out_ += (symbol->upper == INT64_MAX ? "inf" : std::to_string(symbol->upper)) + "]\n";
    }
    if (!module.parameters.empty()) {
      out_ += " ";
      print_names("parameters", module.parameters);
      out_ += "\n";
    }
    for (const auto& function : module.functions()) print_function(*function);
    return out_ + "}\n";
  }

  std::string print_line(const Instruction& instruction) {
    for (const Value& operand : instruction.operands())
      if (operand) name_of(operand.def);
    print_instruction(instruction, "");
    return out_;
  }

private:
  static std::string printed_name(const std::string& name) {
    return is_plain_name(name) ? name : quote(name);
  }

  // A name unique within the function: the instruction's own if it is still free, else numbered.
  const std::string& name_of(const Instruction* instruction) {
    std::string& name = names_[instruction];
    if (!name.empty()) return name;
    std::string wanted = instruction->name();
    if (wanted.empty() || taken_.count(wanted)) {
      std::string base = wanted.empty() ? "" : wanted + "_";
      do wanted = base + std::to_string(next_++);
      while (taken_.count(wanted));
    }
    taken_.insert(wanted);
    name = wanted;
    return name;
  }

  std::string value(const Value& value) {
    if (!value.def) return "<null>";
    std::string text = "%" + printed_name(name_of(value.def));
    return value.def->num_results() > 1 ? text + "#" + std::to_string(value.index) : text;
  }

  void print_parameters(const Region& region) {
    out_ += "(";
    for (size_t i = 0; i < region.parameters().size(); ++i)
      out_ += (i ? ", " : "") + value(region.parameter(static_cast<int>(i))) + ": " +
              region.parameters()[i]->type().to_string();
    out_ += ")";
  }

  // A list in brackets behind its keyword; nothing if there are no names.
  void print_names(const char* keyword, const std::vector<std::string>& names) {
    if (names.empty()) return;
    out_ += std::string(" ") + keyword + " [";
    for (size_t i = 0; i < names.size(); ++i) out_ += (i ? ", " : "") + quote(names[i]);
    out_ += "]";
  }

  void print_function(const Function& function) {
    names_.clear();
    taken_.clear();
    next_ = 0;
    out_ += std::string(function.is_private ? "  private" : " ") + " func @" + printed_name(function.name());
    if (function.gradient) return print_gradient(*function.gradient);
    print_parameters(function.body());
    out_ += " -> (";
    const auto& results = function.body().results();
    for (size_t i = 0; i < results.size(); ++i) out_ += (i ? ", " : "") + results[i].type().to_string();
    out_ += ")";
    print_names("inputs", function.parameter_names);
    print_names("outputs", function.result_names);
    if (!function.aliases.empty()) {
      out_ += " aliases [";
      for (size_t i = 0; i < function.aliases.size(); ++i)
        out_ += (i ? ", " : "") + std::to_string(function.aliases[i]);
      out_ += "]";
    }
    if (!function.adjoint_rule.empty()) out_ += " by @" + printed_name(function.adjoint_rule);
    if (function.tape_bytes) out_ += " tape " + std::to_string(*function.tape_bytes);
    out_ += " {\n";
    print_body(function.body(), "    ");
    out_ += "  }\n";
  }

  void print_gradient(const GradientOf& gradient) {
    auto print_numbers = [&](const char* keyword, const std::vector<int>& numbers) {
      if (!numbers.empty()) out_ += std::string(" ") + keyword + " ";
      for (size_t i = 0; i < numbers.size(); ++i) out_ += (i ? ", " : "") + std::to_string(numbers[i]);
    };
    out_ += " = gradient @" + printed_name(gradient.callee);
    if (gradient.from != 0) out_ += " from " + std::to_string(gradient.from);
    print_numbers("wrt", gradient.wrt);
    print_numbers("keeping", gradient.keeping);
    if (gradient.seedable) out_ += " seedable";
    out_ += gradient.straight_through ? " straight_through\n" : "\n";
  }

  void print_body(const Region& region, const std::string& indent) {
    for (const auto& instruction : region.instructions())
      if (!instruction->is(Opcode::Parameter)) {
        print_instruction(*instruction, indent);
        out_ += "\n";
      }
    out_ += indent + "return";
    for (size_t i = 0; i < region.results().size(); ++i)
      out_ += (i ? ", " : " ") + value(region.results()[i]);
    out_ += "\n";
  }

  void print_instruction(const Instruction& instruction, const std::string& indent) {
    out_ += indent + "%" + printed_name(name_of(&instruction));
    if (instruction.num_results() != 1) out_ += ":" + std::to_string(instruction.num_results());
    out_ += " = " + std::string(opcode_name(instruction.opcode()));
    for (int i = 0; i < instruction.num_operands(); ++i)
      out_ += (i ? ", " : " ") + value(instruction.operand(i));
    const LiteralRef& literal = instruction.literal();
    if (literal) print_literal(*Literal::plain(literal), instruction.location());
    if (!instruction.attributes().empty()) out_ += " " + instruction.attributes().to_string();
    for (int i = 0; i < instruction.num_regions(); ++i) {
      out_ += i ? ", region" : " region";
      print_parameters(instruction.region(i));
      out_ += " {\n";
      print_body(instruction.region(i), indent + "  ");
      out_ += indent + "}";
    }
    out_ += " : ";
    if (instruction.num_results() != 1) out_ += "(";
    for (int i = 0; i < instruction.num_results(); ++i)
      out_ += (i ? ", " : "") + instruction.type(i).to_string();
    if (instruction.num_results() != 1) out_ += ")";
    bool named = literal && !prints_in_place(*literal); // the literal's name is the location
    if (!instruction.location().empty() && !named) out_ += " loc(" + quote(instruction.location()) + ")";
  }

  void print_literal(const Literal& literal, const std::string& name) {
    if (!prints_in_place(literal)) {
      out_ += " <" + (name.empty() ? "" : printed_name(name) + " ") + "#" + literal.hash() + ">";
      return;
    }
    out_ += " [";
    for (int64_t i = 0; i < literal.num_elements(); ++i) out_ += (i ? ", " : "") + print_element(literal, i);
    out_ += "]";
  }

  std::string out_;
  std::unordered_map<const Instruction*, std::string> names_;
  std::set<std::string> taken_;
  int next_ = 0;
};

} // namespace

std::string print_module(const Module& module) {
  return Printer().print(module);
}
std::string print_instruction(const Instruction& instruction) {
  return Printer().print_line(instruction);
}

} // namespace firn
