// Prints kernels and programs. Values and symbols are renumbered in the order of the text, so that kernels
// built in different ways but equal in meaning have equal text.
#include "compiler/kernel/expression_text.h"
#include "compiler/kernel/kir_text.h"

#include <charconv>
#include <cmath>
#include <unordered_map>

namespace firn::kernel {

std::string_view space_name(Space space) {
  static constexpr std::string_view names[] = {"arena", "weights",    "input",  "output",
                                               "state", "parameters", "status", "scratch"};
  return names[static_cast<size_t>(space)];
}

namespace {

std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char text[64];
  auto end = std::to_chars(text, text + sizeof text, number).ptr;
  return std::string(text, end);
}

std::string_view predicate_name(Predicate predicate) {
  static constexpr std::string_view names[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  return names[static_cast<size_t>(predicate)];
}

class KernelPrinter {
public:
  KernelPrinter(const Kernel& kernel, bool anonymous)
      : kernel_(kernel), anonymous_(anonymous), names_(anonymous) {}

  std::string print() {
    text_ = "kernel " + quote(anonymous_ ? "" : kernel_.name);
    if (kernel_.is_for_baseline) text_ += " for_least";
    if (!anonymous_) print_facts();
    text_ += " {\n";
    print_buffers("parameter", kernel_.parameters, "p");
    print_buffers("scratch", kernel_.scratch, "s");
    for (const MatrixTile& tile : kernel_.tiles)
      text_ += "  tile rows " + std::to_string(tile.rows) + " bytes " + std::to_string(tile.row_bytes) + "\n";
    if (!anonymous_) print_in_place();
    for (const SymbolRef& extent : kernel_.extents) text_ += "  extent " + names_.declare(extent) + "\n";
    if (kernel_.parallel) {
      const IntExpr& count = kernel_.parallel_count;
      text_ += "  parallel " + names_.declare(kernel_.parallel) + " count " +
               (count.is_constant() ? count.to_string() : "(" + names_.print(count) + ")") +
               (kernel_.tasks > 1 ? " tasks " + std::to_string(kernel_.tasks) : "") + "\n";
    }
    if (kernel_.phase)
      text_ +=
          "  phases " + names_.declare(kernel_.phase) + " count " + std::to_string(kernel_.phases) + "\n";
    if (kernel_.threads > 0) text_ += "  block_threads " + std::to_string(kernel_.threads) + "\n";
    print_block(kernel_.body, 1);
    return text_ + "}\n";
  }

private:
  void print_facts() {
    if (kernel_.flops) text_ += " flops " + std::to_string(kernel_.flops);
    if (kernel_.bytes) text_ += " bytes " + std::to_string(kernel_.bytes);
    if (!kernel_.algorithm.empty()) text_ += " algorithm " + quote(kernel_.algorithm);
    if (!kernel_.location.empty()) text_ += " at " + quote(kernel_.location);
  }

  void print_buffers(const char* kind, const std::vector<BufferParameter>& buffers, const char* prefix) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      const BufferParameter& buffer = buffers[i];
      text_ += std::string("  ") + kind + " " + quote(anonymous_ ? prefix + std::to_string(i) : buffer.name) +
               " " + std::string(scalar_name(buffer.element)) + "[" + std::to_string(buffer.size) +
               "] align " + std::to_string(buffer.alignment);
      if (buffer.written) text_ += " written";
      if (buffer.per_task) text_ += " per_task";
      if (buffer.shared) text_ += " shared";
      text_ += "\n";
    }
  }

  void print_in_place() {
    for (const InPlace& pair : kernel_.in_place) {
      text_ += "  in_place b" + std::to_string(pair.written) + " over b" + std::to_string(pair.read) + " " +
               std::string(overwriting_name(pair.pattern));
      if (pair.distance) text_ += " behind " + std::to_string(pair.distance);
      text_ += "\n";
    }
  }

  std::string value(Register value) {
    auto [found, added] = numbers_.try_emplace(value.id, static_cast<int>(numbers_.size()));
    return "%" + std::to_string(found->second);
  }
  std::string typed(const std::vector<Register>& values) {
    std::string text;
    for (Register v : values)
      text += (text.empty() ? "" : ", ") + value(v) + ": " + kernel_.type_of(v).to_string();
    return text;
  }

  void print_block(const Block& block, int depth) {
    for (const auto& op : block.ops) print_op(*op, depth);
  }

  void print_op(const Op& op, int depth) {
    text_.append(static_cast<size_t>(2 * depth), ' ');
    std::string operands;
    for (Register operand : op.operands) operands += " " + value(operand);
    if (!op.results.empty()) text_ += typed(op.results) + " = ";
    text_ += std::string(op_kind_info(op.kind).mnemonic) + operands;
    print_attributes(op);
    if (!op.blocks.empty()) {
      for (const Block& block : op.blocks) {
        text_ += " (" + typed(block.arguments) + ") {\n";
        print_block(block, depth + 1);
        text_.append(static_cast<size_t>(2 * depth), ' ');
        text_ += "}";
      }
    }
    text_ += "\n";
  }

  void print_attributes(const Op& op) {
    OpGroup group = op_kind_info(op.kind).group;
    if (group == OpGroup::Compare && op.kind != OpKind::Select)
      text_ += " " + std::string(predicate_name(op.predicate));
    if (!op.numbers.empty() || !op.integers.empty()) {
      std::string list;
      for (double number : op.numbers) list += (list.empty() ? "" : ", ") + number_text(number);
      for (int64_t integer : op.integers) list += (list.empty() ? "" : ", ") + std::to_string(integer);
      text_ += " [" + list + "]";
    }
    if (op.kind == OpKind::Narrow) {
      text_ += " low " + std::to_string(op.low) + " high " + std::to_string(op.high);
      if (op.zero) text_ += " zero " + std::to_string(op.zero);
      if (op.bounded) text_ += " bounded";
    }
    if (op.kind == OpKind::IndexValue) text_ += " (" + names_.print(op.index) + ")";
    if (group == OpGroup::Memory) {
      text_ += " b" + std::to_string(op.buffer) + "[" + names_.print(op.index) + "]";
      if (op.alignment) text_ += " align " + std::to_string(op.alignment);
    }
    if (op.kind == OpKind::CopyAsync)
      text_ += " from b" + std::to_string(op.buffers[0]) + "[" + names_.print(op.source) + "]";
    if (op.streaming) text_ += " streaming";
    if (op.kind == OpKind::For) {
      text_ += " from (" + names_.print(op.lower) + ") to (" + names_.print(op.upper) + ")";
    }
    if (op.symbol) text_ += " as " + names_.declare(op.symbol);
    if (op.step != 1) text_ += " step " + std::to_string(op.step);
    if (op.unroll != 1) text_ += " unroll " + std::to_string(op.unroll);
    if (op.kind == OpKind::CallRuntime) {
      text_ += " " + op.callee + " (";
      for (size_t i = 0; i < op.buffers.size(); ++i)
        text_ += (i ? ", b" : "b") + std::to_string(op.buffers[i]);
      text_ += ")";
    }
  }

  const Kernel& kernel_;
  bool anonymous_;
  ExpressionPrinter names_;
  std::string text_;
  std::unordered_map<int, int> numbers_;
};

class ProgramPrinter {
public:
  explicit ProgramPrinter(const Program& program) : program_(program) {}

  std::string print() {
    text_ = "program " + quote(program_.name) + " arena " + std::to_string(program_.arena_bytes) +
            " lower_bound " + std::to_string(program_.arena_lower_bound) + " weights " +
            std::to_string(program_.weight_bytes) + " {\n";
    print_extents();
    for (const Tensor& tensor : program_.interface.parameters)
      text_ += "  input " + tensor_text(tensor) + "\n";
    for (const Tensor& tensor : program_.interface.results)
      text_ += "  output " + tensor_text(tensor) +
               (tensor.updates >= 0 ? " updates " + std::to_string(tensor.updates) + "\n" : "\n");
    for (const Buffer& buffer : program_.buffers) print_buffer(buffer);
    for (const Constant& constant : program_.constants)
      text_ += "  constant " + std::to_string(constant.buffer) + "\n";
    print_steps(program_.steps, 1);
    text_ += "}\n";
    for (const auto& kernel : program_.kernels) text_ += kernel_text(*kernel, /*anonymous=*/false);
    return text_;
  }

private:
  void print_extents() {
    for (size_t i = 0; i < program_.extents.size(); ++i) {
      text_ += "  extent " + names_.declare(program_.extents[i]);
      if (i < program_.interface.dims.size()) {
        const NamedDim& dim = program_.interface.dims[i];
        text_ += " dim " + quote(dim.name);
        if (dim.multiple != 1) text_ += " multiple " + std::to_string(dim.multiple);
        for (size_t v = 0; v < dim.values.size(); ++v)
          text_ += (v ? ", " : " values ") + std::to_string(dim.values[v]);
      }
      text_ += "\n";
    }
  }

  std::string tensor_text(const Tensor& tensor) const {
    std::string text = quote(tensor.name) + " " + tensor.element + "[";
    for (size_t i = 0; i < tensor.dims.size(); ++i) text += (i ? ", " : "") + names_.print(tensor.dims[i]);
    return text + "]";
  }

  void print_buffer(const Buffer& buffer) {
    text_ += "  buffer " + quote(buffer.name) + " " + std::string(space_name(buffer.space));
    if (buffer.io_index >= 0) text_ += " " + std::to_string(buffer.io_index);
    if (buffer.initial >= 0) text_ += " from " + std::to_string(buffer.initial);
    text_ += " bytes " + std::to_string(buffer.bytes) + " align " + std::to_string(buffer.alignment);
    if (buffer.offset >= 0) text_ += " offset " + std::to_string(buffer.offset);
    if (buffer.extent_of >= 0)
      text_ += " extent " + std::to_string(buffer.extent_of) + " " + std::to_string(buffer.extent_axis);
    if (buffer.kept) text_ += " kept";
    if (!buffer.location.empty()) text_ += " at " + quote(buffer.location);
    text_ += "\n";
  }

  static std::string argument(const Argument& argument) {
    std::string text = std::to_string(argument.buffer);
    if (argument.byte_offset) text += " + " + std::to_string(argument.byte_offset);
    return text;
  }

  void print_steps(const std::vector<Step>& steps, int depth) {
    std::string indent(static_cast<size_t>(2 * depth), ' ');
    for (const Step& step : steps) {
      text_ += indent;
      if (step.kind == Step::Kind::Call) {
        print_call(step);
        continue;
      }
      if (step.kind == Step::Kind::Bind) {
        text_ += "bind " + names_.declare(step.symbol) + " from " + argument(step.condition) + "\n";
        continue;
      }
      if (step.is_preamble()) {
        text_ += step.kind == Step::Kind::Require ? "require\n" : "clear " + argument(step.condition) + "\n";
        continue;
      }
      text_ += opening(step) + " {\n";
      print_steps(step.first, depth + 1);
      if (step.kind == Step::Kind::If || step.kind == Step::Kind::While) {
        text_ += indent + "} {\n";
        print_steps(step.second, depth + 1);
      }
      text_ += indent + "}\n";
    }
  }

  // The words before the steps that a step holds.
  std::string opening(const Step& step) const {
    switch (step.kind) {
    case Step::Kind::If: return "if " + argument(step.condition);
    case Step::Kind::While: return "while " + argument(step.condition);
    case Step::Kind::Checked: return "checked " + argument(step.condition);
    case Step::Kind::When: return "when (" + names_.print(*step.count) + ")";
    case Step::Kind::Share: return "share";
    case Step::Kind::Concurrent: return "concurrent";
    default: FIRN_UNREACHABLE("step holds no steps");
    }
  }

  void print_call(const Step& step) {
    text_ += (step.is_copy ? "copy " : "call ") + std::to_string(step.kernel) + " (";
    for (size_t i = 0; i < step.arguments.size(); ++i) text_ += (i ? ", " : "") + argument(step.arguments[i]);
    text_ += ")";
    for (size_t i = 0; i < step.extents.size(); ++i)
      text_ += (i ? ", " : " extents (") + names_.print(step.extents[i]);
    if (!step.extents.empty()) text_ += ")";
    if (step.count) text_ += " count (" + names_.print(*step.count) + ")";
    if (!step.location.empty()) text_ += " at " + quote(step.location);
    text_ += "\n";
  }

  const Program& program_;
  ExpressionPrinter names_{/*anonymous=*/false};
  std::string text_;
};

} // namespace

std::string kernel_text(const Kernel& kernel, bool anonymous) {
  return KernelPrinter(kernel, anonymous).print();
}

std::string print_kernel(const Kernel& kernel) {
  return kernel_text(kernel, /*anonymous=*/false);
}

std::string print_program(const Program& program) {
  return ProgramPrinter(program).print();
}

} // namespace firn::kernel
