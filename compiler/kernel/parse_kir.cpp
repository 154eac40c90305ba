// Reads programs; kernels are read by parse_kernel.cpp. Text is hostile: whatever it says, the answer is a
// program or a message, and what the verifier checks is left to the verifier.
#include "compiler/kernel/expression_text.h"
#include "compiler/kernel/kir_text.h"

#include <algorithm>

namespace firn::kernel {

namespace {

class ProgramParser {
public:
  explicit ProgramParser(TextScanner& scanner) : scanner_(scanner), expressions_(scanner) {}

  bool parse() {
    return scanner_.expect("program") && name(program.name) && field("arena", program.arena_bytes) &&
           field("lower_bound", program.arena_lower_bound) && field("weights", program.weight_bytes) &&
           scanner_.expect("{") && parse_extents() && parse_tensors() && parse_buffers() &&
           parse_steps(program.steps, /*depth=*/0) && parse_kernels();
  }

  Program program;

private:
  bool name(std::string& text) { return scanner_.quoted(text) || scanner_.fail("expected a quoted name"); }
  bool integer(int64_t& value) { return scanner_.integer(value) || scanner_.fail("expected an integer"); }
  bool field(std::string_view word, int64_t& value) { return scanner_.expect(word) && integer(value); }
  bool number(int& value) {
    int64_t wide = 0;
    if (!integer(wide)) return false;
    if (wide < INT32_MIN || wide > INT32_MAX) return scanner_.fail("number is out of range");
    value = static_cast<int>(wide);
    return true;
  }

  bool parse_extents() {
    while (scanner_.accept("extent")) {
      program.extents.emplace_back();
      if (!expressions_.parse_symbol(program.extents.back())) return false;
      if (scanner_.accept("dim") && !parse_dim()) return false;
    }
    return !scanner_.failed();
  }

  // All extents have a dim or none has.
  bool parse_dim() {
    std::vector<NamedDim>& dims = program.interface.dims;
    dims.emplace_back();
    if (dims.size() != program.extents.size()) return scanner_.fail("an extent before this one has no dim");
    NamedDim& dim = dims.back();
    if (!name(dim.name)) return false;
    if (scanner_.accept("multiple")) {
      if (!integer(dim.multiple)) return false;
      if (dim.multiple < 1 || dim.multiple > kLargestExtent)
        return scanner_.fail("expected a multiple above 0");
    }
    if (!scanner_.accept("values")) return true;
    do {
      dim.values.push_back(0);
      if (!integer(dim.values.back())) return false;
    } while (scanner_.accept(","));
    return true;
  }

  bool parse_tensors() {
    while (scanner_.accept("input")) {
      Tensor tensor;
      if (!parse_tensor(tensor)) return false;
      program.interface.parameters.push_back(std::move(tensor));
    }
    while (scanner_.accept("output")) {
      Tensor tensor;
      if (!parse_tensor(tensor) || (scanner_.accept("updates") && !number(tensor.updates))) return false;
      program.interface.results.push_back(std::move(tensor));
    }
    return !scanner_.failed();
  }

  // "name" element[dim, dim]
  bool parse_tensor(Tensor& tensor) {
    if (!name(tensor.name)) return false;
    tensor.element = scanner_.word();
    if (tensor.element.empty()) return scanner_.fail("expected the type of elements");
    if (!scanner_.expect("[")) return false;
    if (scanner_.accept("]")) return true;
    do {
      tensor.dims.emplace_back();
      if (!expressions_.parse(tensor.dims.back())) return false;
    } while (scanner_.accept(","));
    return scanner_.expect("]");
  }

  bool parse_buffers() {
    while (scanner_.accept("buffer")) {
      Buffer buffer;
      if (!name(buffer.name) || !parse_space(buffer) || !field("bytes", buffer.bytes) ||
          !scanner_.expect("align") || !number(buffer.alignment)) {
        return false;
      }
      if (scanner_.accept("offset") && !integer(buffer.offset)) return false;
      if (scanner_.accept("extent") && (!number(buffer.extent_of) || !number(buffer.extent_axis)))
        return false;
      buffer.kept = scanner_.accept("kept");
      if (scanner_.accept("at") && !name(buffer.location)) return false;
      program.buffers.push_back(std::move(buffer));
    }
    while (scanner_.accept("constant")) {
      Constant constant; // the text has no bytes
      if (!number(constant.buffer)) return false;
      program.constants.push_back(std::move(constant));
    }
    return !scanner_.failed();
  }

  bool parse_space(Buffer& buffer) {
    for (Space space : {Space::Arena, Space::Weights, Space::Input, Space::Output, Space::State,
                        Space::Parameters, Space::Status}) {
      if (!scanner_.accept(space_name(space))) continue;
      buffer.space = space;
      if (space == Space::Arena || space == Space::Weights || space == Space::Status) return true;
      if (!number(buffer.io_index)) return false;
      return !is_state(space) || !scanner_.accept("from") || number(buffer.initial);
    }
    return scanner_.fail("expected arena, weights, input, output, state, parameters or status");
  }

  bool parse_argument(Argument& argument) {
    if (!number(argument.buffer)) return false;
    return !scanner_.accept("+") || integer(argument.byte_offset);
  }

  // Steps up to and with the closing brace.
  bool parse_steps(std::vector<Step>& steps, int depth) {
    if (depth > 100) return scanner_.fail("steps are nested too deeply");
    while (!scanner_.accept("}")) {
      Step step;
      step.is_copy = scanner_.accept("copy");
      if (step.is_copy || scanner_.accept("call")) {
        if (!parse_call(step)) return false;
      } else if (scanner_.accept("bind")) {
        step.kind = Step::Kind::Bind;
        if (!expressions_.parse_symbol(step.symbol) || !scanner_.expect("from") ||
            !parse_argument(step.condition))
          return false;
      } else if (scanner_.accept("require")) {
        step.kind = Step::Kind::Require;
      } else if (scanner_.accept("clear")) {
        step.kind = Step::Kind::Clear;
        if (!parse_argument(step.condition)) return false;
      } else if (!parse_region(step, depth)) {
        return false;
      }
      steps.push_back(std::move(step));
    }
    return !scanner_.failed();
  }

  // A step that holds others.
  bool parse_region(Step& step, int depth) {
    static constexpr std::pair<std::string_view, Step::Kind> kinds[] = {
        {"if", Step::Kind::If},
        {"while", Step::Kind::While},
        {"concurrent", Step::Kind::Concurrent},
        {"checked", Step::Kind::Checked},
        {"when", Step::Kind::When},
        {"share", Step::Kind::Share}};
    const auto* found = std::find_if(std::begin(kinds), std::end(kinds),
                                     [&](const auto& each) { return scanner_.accept(each.first); });
    if (found == std::end(kinds))
      return scanner_.fail(
          "expected a call, copy, bind, require, clear, checked, when, share, concurrent, if, "
          "while or '}'");
    step.kind = found->second;
    if (step.has_condition() && !parse_argument(step.condition)) return false;
    if (step.kind == Step::Kind::When && !parse_count(step)) return false;
    if (!scanner_.expect("{") || !parse_steps(step.first, depth + 1)) return false;
    bool has_two = step.kind == Step::Kind::If || step.kind == Step::Kind::While;
    return !has_two || (scanner_.expect("{") && parse_steps(step.second, depth + 1));
  }

  bool parse_count(Step& step) {
    step.count.emplace();
    return scanner_.expect("(") && expressions_.parse(*step.count) && scanner_.expect(")");
  }

  bool parse_call(Step& step) {
    if (!number(step.kernel) || !scanner_.expect("(")) return false;
    for (bool first = true; !scanner_.accept(")"); first = false) {
      Argument argument;
      if ((!first && !scanner_.expect(",")) || !parse_argument(argument)) return false;
      step.arguments.push_back(argument);
    }
    if (scanner_.accept("extents")) {
      if (!scanner_.expect("(")) return false;
      do {
        step.extents.emplace_back();
        if (!expressions_.parse(step.extents.back())) return false;
      } while (scanner_.accept(","));
      if (!scanner_.expect(")")) return false;
    }
    if (scanner_.accept("count") && !parse_count(step)) return false;
    return !scanner_.accept("at") || name(step.location);
  }

  bool parse_kernels() {
    while (!scanner_.at_end()) {
      if (scanner_.next_is("program"))
        return scanner_.fail(
            "expected a kernel: programs for several CPUs or values of dims are not read back");
      if (!scanner_.expect("kernel")) return false;
      program.kernels.push_back(std::make_unique<Kernel>());
      if (!parse_kernel(scanner_, *program.kernels.back())) return false;
    }
    return true;
  }

  TextScanner& scanner_;
  ExpressionParser expressions_;
};

} // namespace

Expected<Program> parse_program(std::string file, std::string_view text) {
  TextScanner scanner(std::move(file), text);
  ProgramParser parser(scanner);
  if (!parser.parse()) return scanner.error();
  return std::move(parser.program);
}

} // namespace firn::kernel
