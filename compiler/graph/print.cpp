// Printing of the graph IR, and the side file of large literals.
#include "compiler/graph/text.h"

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

std::string print_float(double value, const char* format) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// NaNs other than the default one keep their bits by printing them.
std::string print_element(const Literal& literal, int64_t i) {
  DType dtype = literal.dtype();
  if (dtype == DType::String) return quote(literal.string_values()[static_cast<size_t>(i)]);
  if (dtype == DType::Bool) return literal.get_int(i) ? "true" : "false";
  if (dtype == DType::U64) return std::to_string(static_cast<uint64_t>(literal.get_int(i)));
  if (is_integer(dtype)) return std::to_string(literal.get_int(i));
  auto raw_bits = [&](int bytes) {
    uint64_t bits = 0;
    std::memcpy(&bits, literal.bytes().data() + i * bytes, static_cast<size_t>(bytes));
    char text[24];
    std::snprintf(text, sizeof text, "0x%0*llx", bytes * 2, static_cast<unsigned long long>(bits));
    return std::string("bits ") + text;
  };
  double value = is_complex(dtype) ? 0 : literal.get_double(i);
  if (is_complex(dtype)) {
    bool wide = dtype == DType::C128;
    double parts[2];
    for (int part = 0; part < 2; ++part)
      parts[part] = wide ? literal.data<double>()[static_cast<size_t>(2 * i + part)]
                         : static_cast<double>(literal.data<float>()[static_cast<size_t>(2 * i + part)]);
    return "(" + print_float(parts[0], "%.17g") + ", " + print_float(parts[1], "%.17g") + ")";
  }
  if (std::isnan(value) && bit_width(dtype) >= 8) return raw_bits(bit_width(dtype) / 8);
  return print_float(value, dtype == DType::F64 ? "%.17g" : "%.9g");
}

class Printer {
public:
  std::string print(const Module& module) {
    out_ = "module @" + printed_name(module.name()) + " {\n";
    for (const SymbolRef& symbol : module.symbols) {
      out_ += "  symbol " + printed_name(symbol->name) + " in [" + std::to_string(symbol->lower) + ", ";
      out_ += (symbol->upper == INT64_MAX ? "inf" : std::to_string(symbol->upper)) + "]\n";
    }
    for (const auto& function : module.functions()) print_function(*function);
    return out_ + "}\n";
  }

  std::string print_line(const Instruction& instruction) {
    for (const Value& operand : instruction.operands()) name_of(operand.def);
    print_instruction(instruction, "");
    return out_;
  }

private:
  static std::string printed_name(const std::string& name) { return is_plain_name(name) ? name : quote(name); }

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

  void print_function(const Function& function) {
    names_.clear();
    taken_.clear();
    next_ = 0;
    out_ += "  func @" + printed_name(function.name());
    print_parameters(function.body());
    out_ += " -> (";
    const auto& results = function.body().results();
    for (size_t i = 0; i < results.size(); ++i) out_ += (i ? ", " : "") + results[i].type().to_string();
    out_ += ")";
    auto print_names = [&](const char* keyword, const std::vector<std::string>& names) {
      if (names.empty()) return;
      out_ += std::string(" ") + keyword + " [";
      for (size_t i = 0; i < names.size(); ++i) out_ += (i ? ", " : "") + quote(names[i]);
      out_ += "]";
    };
    print_names("inputs", function.parameter_names);
    print_names("outputs", function.result_names);
    if (!function.aliases.empty()) {
      out_ += " aliases [";
      for (size_t i = 0; i < function.aliases.size(); ++i) out_ += (i ? ", " : "") + std::to_string(function.aliases[i]);
      out_ += "]";
    }
    out_ += " {\n";
    print_body(function.body(), "    ");
    out_ += "  }\n";
  }

  void print_body(const Region& region, const std::string& indent) {
    for (const auto& instruction : region.instructions())
      if (!instruction->is(Opcode::Parameter)) {
        print_instruction(*instruction, indent);
        out_ += "\n";
      }
    out_ += indent + "return";
    for (size_t i = 0; i < region.results().size(); ++i) out_ += (i ? ", " : " ") + value(region.results()[i]);
    out_ += "\n";
  }

  void print_instruction(const Instruction& instruction, const std::string& indent) {
    out_ += indent + "%" + printed_name(name_of(&instruction));
    if (instruction.num_results() != 1) out_ += ":" + std::to_string(instruction.num_results());
    out_ += " = " + std::string(opcode_name(instruction.opcode()));
    for (int i = 0; i < instruction.num_operands(); ++i) out_ += (i ? ", " : " ") + value(instruction.operand(i));
    if (instruction.literal()) print_literal(*instruction.literal(), instruction.name());
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
    for (int i = 0; i < instruction.num_results(); ++i) out_ += (i ? ", " : "") + instruction.type(i).to_string();
    if (instruction.num_results() != 1) out_ += ")";
    if (!instruction.location().empty()) out_ += " loc(" + quote(instruction.location()) + ")";
  }

  void print_literal(const Literal& literal, const std::string&) {
    if (literal.is_opaque() || literal.num_elements() > kInlineLiteralElements) {
      out_ += " <" + literal.hash() + ">";
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

void collect_literals(const Region& region, std::map<std::string, LiteralRef>& found) {
  for (const auto& instruction : region.instructions()) {
    const LiteralRef& literal = instruction->literal();
    if (literal && !literal->is_opaque() && literal->num_elements() > kInlineLiteralElements)
      found.emplace(literal->hash(), literal);
    for (int i = 0; i < instruction->num_regions(); ++i) collect_literals(instruction->region(i), found);
  }
}

constexpr std::string_view kSideFileHead = "firn literals 1\n";

} // namespace

std::string print_module(const Module& module) { return Printer().print(module); }
std::string print_instruction(const Instruction& instruction) { return Printer().print_line(instruction); }

// A side file is its head line, then per literal one line "hash type size" and the bytes (strings: each prefixed by its
// 8-byte length).
std::string write_literals(const Module& module) {
  std::map<std::string, LiteralRef> found;
  for (const auto& function : module.functions()) collect_literals(function->body(), found);
  std::string out(kSideFileHead);
  for (const auto& [hash, literal] : found) {
    std::string content;
    if (literal->dtype() == DType::String) {
      for (const std::string& text : literal->string_values()) {
        uint64_t size = text.size();
        content.append(reinterpret_cast<const char*>(&size), sizeof size);
        content += text;
      }
    } else {
      content.assign(reinterpret_cast<const char*>(literal->bytes().data()), literal->bytes().size());
    }
    out += hash + " " + literal->type().to_string() + " " + std::to_string(content.size()) + "\n" + content;
  }
  return out;
}

Expected<LiteralTable> read_literals(std::shared_ptr<const MappedFile> file) {
  auto broken = [&] { return model_error(file->path() + ": not a side file of literals, or cut short"); };
  std::string_view text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  if (!text.starts_with(kSideFileHead)) return broken();
  LiteralTable table;
  size_t at = kSideFileHead.size();
  while (at < text.size()) {
    size_t end = text.find('\n', at);
    if (end == text.npos) return broken();
    TextScanner line(file->path(), text.substr(at, end - at));
    std::string hash(line.word_with(""));
    auto dtype = parse_dtype(line.word());
    std::vector<int64_t> dims;
    int64_t value = 0, size = 0;
    if (!dtype || !line.expect("[")) return broken();
    while (line.integer(value)) {
      dims.push_back(value);
      line.accept(",");
    }
    if (!line.expect("]") || !line.integer(size) || !checked_num_elements(dims)) return broken();
    at = end + 1;
    if (size < 0 || static_cast<size_t>(size) > text.size() - at) return broken();
    auto count = static_cast<size_t>(*checked_num_elements(dims));
    if (*dtype == DType::String) {
      std::vector<std::string> strings;
      size_t stop = at + static_cast<size_t>(size), cursor = at;
      while (strings.size() < count) {
        uint64_t length = 0;
        if (stop - cursor < sizeof length) return broken();
        std::memcpy(&length, text.data() + cursor, sizeof length);
        cursor += sizeof length;
        if (length > stop - cursor) return broken();
        strings.emplace_back(text.substr(cursor, length));
        cursor += length;
      }
      table[hash] = Literal::strings(std::move(dims), std::move(strings));
    } else {
      if (byte_size(*dtype, count) != static_cast<size_t>(size)) return broken();
      table[hash] = Literal::mapped(*dtype, std::move(dims), file, at);
    }
    at += static_cast<size_t>(size);
  }
  return table;
}

} // namespace firn
