// Reads one kernel. Values must be typed where they are first written; operands may only name values seen
// before.
#include "compiler/kernel/expression_text.h"
#include "compiler/kernel/kir_text.h"
#include "compiler/target/machine.h"

#include <cstdlib>
#include <unordered_map>

namespace firn::kernel {

namespace {

class KernelParser {
public:
  KernelParser(TextScanner& scanner, Kernel& kernel)
      : scanner_(scanner), expressions_(scanner), kernel_(kernel) {}

  bool parse() {
    return (scanner_.quoted(kernel_.name) || scanner_.fail("expected the kernel's name in quotes")) &&
           parse_facts() && scanner_.expect("{") && parse_buffers("parameter", kernel_.parameters) &&
           parse_buffers("scratch", kernel_.scratch) && parse_tiles() && parse_in_place() &&
           parse_extents() && parse_parallel() && parse_block_threads() &&
           parse_block(kernel_.body, /*depth=*/0);
  }

private:
  bool fail(const std::string& message) { return scanner_.fail(message); }
  bool integer(int64_t& value) { return scanner_.integer(value) || fail("expected an integer"); }
  bool number(int& value, int64_t limit = INT32_MAX) {
    int64_t wide = 0;
    if (!integer(wide)) return false;
    if (wide < 0 || wide > limit) return fail("number is out of range");
    value = static_cast<int>(wide);
    return true;
  }

  bool parse_facts() {
    auto text = [&](std::string& to) { return scanner_.quoted(to) || fail("expected text in quotes"); };
    kernel_.is_for_baseline = scanner_.accept("for_least");
    if (scanner_.accept("flops") && !integer(kernel_.flops)) return false;
    if (scanner_.accept("bytes") && !integer(kernel_.bytes)) return false;
    if (scanner_.accept("algorithm") && !text(kernel_.algorithm)) return false;
    return !scanner_.accept("at") || text(kernel_.location);
  }

  bool parse_scalar(Scalar& scalar, std::string_view word) {
    for (int i = 0; i <= static_cast<int>(Scalar::I128); ++i) {
      if (scalar_name(static_cast<Scalar>(i)) != word) continue;
      scalar = static_cast<Scalar>(i);
      return true;
    }
    return fail("'" + std::string(word) + "' is no type");
  }

  bool parse_type(MachineType& type) {
    type.spread = scanner_.accept("spread");
    std::string_view word = scanner_.word();
    // "index" holds an x, which no other type does before its lanes.
    size_t cross = word.starts_with("index") ? word.find('x', 5) : word.find('x');
    if (!parse_scalar(type.scalar, word.substr(0, cross))) return false;
    if (cross == std::string_view::npos) return true;
    std::string lanes(word.substr(cross + 1));
    type.lanes = lanes.empty() || lanes.size() > 4 ? 0 : std::atoi(lanes.c_str());
    return (type.lanes >= 1 && type.lanes <= 4096) ||
           fail("'" + std::string(word) + "' has a bad number of lanes");
  }

  bool parse_buffers(std::string_view kind, std::vector<BufferParameter>& buffers) {
    while (scanner_.accept(kind)) {
      BufferParameter buffer;
      if (!scanner_.quoted(buffer.name)) return fail("expected the buffer's name in quotes");
      if (!parse_scalar(buffer.element, scanner_.word()) || !scanner_.expect("[") || !integer(buffer.size) ||
          !scanner_.expect("]") || !scanner_.expect("align") || !number(buffer.alignment)) {
        return false;
      }
      buffer.written = scanner_.accept("written");
      buffer.per_task = scanner_.accept("per_task");
      buffer.shared = scanner_.accept("shared");
      buffers.push_back(std::move(buffer));
    }
    return !scanner_.failed();
  }

  // tile rows 16 bytes 64
  bool parse_tiles() {
    while (scanner_.accept("tile")) {
      kernel_.tiles.emplace_back();
      if (!scanner_.expect("rows") || !number(kernel_.tiles.back().rows) || !scanner_.expect("bytes") ||
          !number(kernel_.tiles.back().row_bytes))
        return false;
    }
    return !scanner_.failed();
  }

  // in_place b1 over b0 sliding behind 64
  bool parse_in_place() {
    while (scanner_.accept("in_place")) {
      InPlace pair;
      if (!parse_buffer_number(pair.written) || !scanner_.expect("over") || !parse_buffer_number(pair.read) ||
          !parse_pattern(pair.pattern) || (scanner_.accept("behind") && !integer(pair.distance))) {
        return false;
      }
      kernel_.in_place.push_back(pair);
    }
    return !scanner_.failed();
  }
  bool parse_pattern(Overwriting& pattern) {
    for (Overwriting known : {Overwriting::Pointwise, Overwriting::RowWise, Overwriting::Sliding}) {
      pattern = known;
      if (scanner_.accept(overwriting_name(known))) return true;
    }
    return fail("expected pointwise, row_wise or sliding");
  }

  bool parse_extents() {
    while (scanner_.accept("extent")) {
      kernel_.extents.emplace_back();
      if (!expressions_.parse_symbol(kernel_.extents.back())) return false;
    }
    return !scanner_.failed();
  }

  // A number, or an expression over extents in brackets.
  bool parse_count(IntExpr& count) {
    if (scanner_.accept("(")) return expressions_.parse(count) && scanner_.expect(")");
    int64_t number = 0;
    if (!integer(number)) return false;
    count = number;
    return true;
  }
  bool parse_parallel() {
    if (!scanner_.accept("parallel")) return true;
    return expressions_.parse_symbol(kernel_.parallel) && scanner_.expect("count") &&
           parse_count(kernel_.parallel_count) && (!scanner_.accept("tasks") || number(kernel_.tasks)) &&
           parse_phases();
  }
  bool parse_phases() {
    if (!scanner_.accept("phases")) return true;
    return expressions_.parse_symbol(kernel_.phase) && scanner_.expect("count") && integer(kernel_.phases);
  }

  bool parse_block_threads() {
    return !scanner_.accept("block_threads") || number(kernel_.threads, kMaxBlockThreads);
  }

  // %7: f32x16 defines, %7 uses.
  bool parse_definition(std::vector<Register>& values) {
    int name = 0;
    MachineType type;
    if (!scanner_.expect("%") || !number(name) || !scanner_.expect(":") || !parse_type(type)) return false;
    if (values_.contains(name)) return fail("%" + std::to_string(name) + " is defined twice");
    Register value{static_cast<int>(kernel_.register_types.size())};
    kernel_.register_types.push_back(type);
    values_[name] = value;
    values.push_back(value);
    return true;
  }
  bool parse_use(std::vector<Register>& values) {
    int name = 0;
    if (!scanner_.expect("%") || !number(name)) return false;
    auto found = values_.find(name);
    if (found == values_.end()) return fail("%" + std::to_string(name) + " is not defined");
    values.push_back(found->second);
    return true;
  }

  // Ops up to and with the closing brace.
  bool parse_block(Block& block, int depth) {
    if (depth > 100) return fail("blocks are nested too deeply");
    while (!scanner_.accept("}")) {
      if (scanner_.failed() || scanner_.at_end()) return fail("expected an op or '}'");
      block.ops.push_back(std::make_unique<Op>());
      if (!parse_op(*block.ops.back(), depth)) return false;
    }
    return true;
  }

  bool parse_kind(OpKind& kind) {
    std::string_view word = scanner_.word();
    for (int i = 0; i <= static_cast<int>(OpKind::CallRuntime); ++i) {
      if (op_kind_info(static_cast<OpKind>(i)).mnemonic != word) continue;
      kind = static_cast<OpKind>(i);
      return true;
    }
    return fail("'" + std::string(word) + "' is no op");
  }

  bool parse_op(Op& op, int depth) {
    if (scanner_.next_is("%")) {
      do {
        if (!parse_definition(op.results)) return false;
      } while (scanner_.accept(","));
      if (!scanner_.expect("=")) return false;
    }
    if (!parse_kind(op.kind)) return false;
    // An op without operands may be followed by the next one's result, which has a colon.
    OpGroup group = op_kind_info(op.kind).group;
    bool has_operands = op_kind_info(op.kind).operands != 0;
    while (has_operands && scanner_.next_is("%") && !is_definition()) {
      if (!parse_use(op.operands)) return false;
    }
    if (!parse_attributes(op, group)) return false;
    for (size_t i = 0; i < blocks_of(op.kind); ++i) {
      op.blocks.emplace_back();
      if (!parse_arguments(op.blocks.back()) || !scanner_.expect("{") ||
          !parse_block(op.blocks.back(), depth + 1)) {
        return false;
      }
    }
    return true;
  }

  // Whether `%n` is followed by a colon: looks ahead with a copy of the scanner.
  bool is_definition() {
    TextScanner ahead = scanner_;
    int64_t name = 0;
    return ahead.accept("%") && ahead.integer(name) && ahead.next_is(":");
  }

  bool parse_arguments(Block& block) {
    if (!scanner_.expect("(")) return false;
    if (scanner_.accept(")")) return true;
    do {
      if (!parse_definition(block.arguments)) return false;
    } while (scanner_.accept(","));
    return scanner_.expect(")");
  }

  bool parse_attributes(Op& op, OpGroup group) {
    if (group == OpGroup::Compare && op.kind != OpKind::Select && !parse_predicate(op.predicate))
      return false;
    if (scanner_.accept("[") && !parse_numbers(op)) return false;
    if (op.kind == OpKind::Narrow) {
      if (!scanner_.expect("low") || !integer(op.low) || !scanner_.expect("high") || !integer(op.high) ||
          (scanner_.accept("zero") && !integer(op.zero)))
        return false;
      op.bounded = scanner_.accept("bounded");
      return true;
    }
    if (op.kind == OpKind::IndexValue)
      return scanner_.expect("(") && expressions_.parse(op.index) && scanner_.expect(")");
    if (group == OpGroup::Memory) {
      if (!parse_buffer_number(op.buffer) || !scanner_.expect("[") || !expressions_.parse(op.index) ||
          !scanner_.expect("]") || (scanner_.accept("align") && !number(op.alignment))) {
        return false;
      }
      op.streaming = scanner_.accept("streaming");
    }
    if (op.kind == OpKind::CopyAsync) {
      op.buffers.push_back(-1);
      return scanner_.expect("from") && parse_buffer_number(op.buffers[0]) && scanner_.expect("[") &&
             expressions_.parse(op.source) && scanner_.expect("]");
    }
    if (op.kind == OpKind::For) {
      if (!scanner_.expect("from") || !scanner_.expect("(") || !expressions_.parse(op.lower) ||
          !scanner_.expect(")") || !scanner_.expect("to") || !scanner_.expect("(") ||
          !expressions_.parse(op.upper) || !scanner_.expect(")")) {
        return false;
      }
    }
    if (op.kind == OpKind::For || op.kind == OpKind::Threads || op.kind == OpKind::Symbolic) {
      if (!scanner_.expect("as") || !expressions_.parse_symbol(op.symbol)) return false;
    }
    if (op.kind == OpKind::For) {
      if (scanner_.accept("step") && !integer(op.step)) return false;
      if (scanner_.accept("unroll") && !integer(op.unroll)) return false;
    }
    if (op.kind == OpKind::CallRuntime) return parse_callee(op);
    return !scanner_.failed();
  }

  bool parse_predicate(Predicate& predicate) {
    static constexpr std::string_view names[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    for (size_t i = 0; i < 6; ++i) {
      if (!scanner_.accept(names[i])) continue;
      predicate = static_cast<Predicate>(i);
      return true;
    }
    return fail("expected eq, ne, lt, le, gt or ge");
  }

  bool parse_numbers(Op& op) {
    bool floats = op.kind == OpKind::Constant && op.results.size() == 1 &&
                  is_float(kernel_.type_of(op.results[0]).scalar);
    do {
      double value = 0;
      int64_t whole = 0;
      if (floats ? !scanner_.number(value) : !scanner_.integer(whole)) return fail("expected a number");
      if (floats)
        op.numbers.push_back(value);
      else
        op.integers.push_back(whole);
      if (op.numbers.size() + op.integers.size() > 8192) return fail("too many numbers");
    } while (scanner_.accept(","));
    return scanner_.expect("]");
  }

  bool parse_buffer_number(int& buffer) {
    std::string word(scanner_.word());
    bool good = word.size() >= 2 && word.size() <= 6 && word[0] == 'b' &&
                word.find_first_not_of("0123456789", 1) == std::string::npos;
    if (!good) return fail("expected a buffer such as b0");
    buffer = std::atoi(word.c_str() + 1);
    return true;
  }

  bool parse_callee(Op& op) {
    op.callee = std::string(scanner_.word());
    if (!scanner_.expect("(")) return false;
    if (scanner_.accept(")")) return true;
    do {
      op.buffers.push_back(-1);
      if (!parse_buffer_number(op.buffers.back())) return false;
    } while (scanner_.accept(","));
    return scanner_.expect(")");
  }

  TextScanner& scanner_;
  ExpressionParser expressions_;
  Kernel& kernel_;
  std::unordered_map<int, Register> values_;
};

} // namespace

bool parse_kernel(TextScanner& scanner, Kernel& kernel) {
  return KernelParser(scanner, kernel).parse();
}

} // namespace firn::kernel
