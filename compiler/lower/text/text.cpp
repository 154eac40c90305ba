// Ops on strings. Elements are addresses and sizes; what looks at their bytes is a call of the runtime over
// the whole tensor, as the time goes to the bytes.
#include "compiler/lower/text/text.h"

#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/lower/layout_packing.h"
#include "compiler/plan/fixed/plan.h"
#include "compiler/support/regex.h"

#include <algorithm>
#include <numeric>

namespace firn::lower {

namespace {

using kernel::Register;
using kernel::Scalar;
using Strings = std::vector<std::string>;

// The kernel of one call of the runtime, whose arguments are buffers and then numbers, in the order of the
// function's declaration (include/firn/text.h).
class RuntimeCall {
public:
  RuntimeCall(LoweringContext& context, const Instruction& instruction, const char* stem)
      : maker_(context, instruction, stem) {}
  RuntimeCall(LoweringContext& context, const std::string& location, const char* stem)
      : maker_(context, location, stem) {}

  void read(Value value) { buffers_.push_back(maker_.read(value)); }
  void write(Value value) { buffers_.push_back(maker_.write(value)); }
  void write(BufferSlice place, Scalar element, int64_t elements, const char* name) {
    buffers_.push_back(maker_.parameter(place, element, elements, /*written=*/true, name));
  }
  void constant(const LiteralRef& literal, const char* name) {
    int64_t bytes = static_cast<int64_t>(literal->bytes().size());
    Scalar element = memory_scalar(literal->dtype());
    BufferSlice place{maker_.context().add_constant(literal, layout_packing(literal->type(), bytes),
                                                    maker_.kernel().location + "." + name),
                      0};
    buffers_.push_back(maker_.parameter(place, element, bytes / kernel::scalar_bytes(element),
                                        /*written=*/false, name));
  }
  void status() { write(maker_.context().status_place(), Scalar::I32, 1, "status"); }
  // The room for texts that are made, behind 8 bytes that count those in use (firn_rt2_text_room).
  void room() {
    LoweringContext& context = maker_.context();
    write(context.string_arena(), Scalar::I8, 8 + context.options().goals.text_bytes, "room");
    status();
  }
  void number(const IntExpr& value) { numbers_.push_back(maker_.builder().index(value)); }
  void elements(const Type& type) {
    IntExpr count = 1;
    for (const Dim& dim : type.dims) count = count * dim.extent;
    number(count);
  }
  void finish(const char* callee) {
    maker_.builder().call_runtime(callee, buffers_, numbers_);
    maker_.finish();
  }

private:
  KernelMaker maker_;
  std::vector<int> buffers_;
  std::vector<Register> numbers_;
};

void emit_compare(LoweringContext& context, const Instruction& compare) {
  // Bits of the results that are wanted: 1 less, 2 equal, 4 greater.
  static constexpr std::pair<std::string_view, int64_t> kWanted[] = {{"lt", 1}, {"eq", 2}, {"le", 3},
                                                                     {"gt", 4}, {"ne", 5}, {"ge", 6}};
  const std::string& direction = compare.attributes().word("direction");
  RuntimeCall call(context, compare, "text_compare");
  call.read(compare.operand(0));
  call.read(compare.operand(1));
  call.write(result_of(compare));
  call.elements(compare.type());
  for (auto [name, wanted] : kWanted)
    if (name == direction) call.number(wanted);
  call.finish("firn_rt2_text_compare");
}

void emit_text_concatenate(LoweringContext& context, const Instruction& concatenate) {
  RuntimeCall call(context, concatenate, "text_concatenate");
  call.read(concatenate.operand(0));
  call.read(concatenate.operand(1));
  call.write(result_of(concatenate));
  call.room();
  call.elements(concatenate.type());
  call.number(context.options().goals.text_bytes);
  call.finish("firn_rt2_text_concatenate");
}

template <class T> LiteralRef vector_of(DType dtype, const std::vector<T>& values) {
  return Literal::of(dtype, {static_cast<int64_t>(values.size())},
                     std::vector<int64_t>(values.begin(), values.end()));
}

// Keys in rising order of their bytes, the first of equal ones.
std::vector<int64_t> sorted_positions(const Strings& keys) {
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  auto key = [&](int64_t at) -> const std::string& { return keys[static_cast<size_t>(at)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return key(a) < key(b); });
  auto equal = [&](int64_t a, int64_t b) { return key(a) == key(b); };
  order.erase(std::unique(order.begin(), order.end(), equal), order.end());
  return order;
}

void emit_find(LoweringContext& context, const Instruction& find) {
  const Strings& keys = find.operand(1).def->literal()->string_values();
  std::vector<int64_t> order = sorted_positions(keys);
  Strings sorted;
  for (int64_t at : order) sorted.push_back(keys[static_cast<size_t>(at)]);
  if (order.empty()) order.push_back(-1); // constants have at least one element
  TextTable table = text_table(sorted);
  RuntimeCall call(context, find, "text_find");
  call.read(find.operand(0));
  call.constant(table.places, "places");
  call.constant(table.bytes, "bytes");
  call.constant(Literal::of_i64(order), "positions");
  call.write(result_of(find));
  call.elements(find.type());
  call.number(static_cast<int64_t>(sorted.size()));
  call.finish("firn_rt2_text_find");
}

void emit_case(LoweringContext& context, const Instruction& change) {
  RuntimeCall call(context, change, "text_case");
  call.read(change.operand(0));
  call.write(result_of(change));
  call.room();
  call.elements(change.type());
  call.number(context.options().goals.text_bytes);
  call.number(change.attributes().word("to") == "upper" ? 1 : 0);
  call.finish("firn_rt2_text_case");
}

// Numbers to strings or back.
void emit_convert(LoweringContext& context, const Instruction& convert) {
  DType from = convert.operand(0).dtype(), to = convert.type().dtype;
  DType number = from == DType::String ? to : from;
  RuntimeCall call(context, convert, "text_convert");
  call.read(convert.operand(0));
  call.write(result_of(convert));
  from == DType::String ? call.status() : call.room();
  call.elements(convert.type());
  if (to == DType::String) call.number(context.options().goals.text_bytes);
  if (is_float(number)) {
    call.number(bit_width(number) / 8);
    return call.finish(from == DType::String ? "firn_rt2_text_to_reals" : "firn_rt2_text_of_reals");
  }
  if (from == DType::String) return call.finish("firn_rt2_text_to_integers");
  call.number(is_signed(from));
  call.finish("firn_rt2_text_of_integers");
}

void emit_match(LoweringContext& context, const Instruction& match) {
  auto regex = parse_regex(std::get<std::string>(*match.attributes().find("pattern")));
  FIRN_CHECK(bool(regex), "a pattern that the verifier accepted");
  auto table = make_regex_table(*regex);
  FIRN_CHECK(bool(table), "a pattern that was found to have a table");
  RuntimeCall call(context, match, "text_match");
  call.read(match.operand(0));
  call.constant(vector_of(DType::U8, table->class_of), "classes");
  call.constant(vector_of(DType::U16, table->next), "states");
  call.constant(vector_of(DType::U8, table->accepts), "accepts");
  call.write(result_of(match));
  call.elements(match.type());
  call.number(table->classes);
  call.finish("firn_rt2_text_match");
}

void emit_split(LoweringContext& context, const Instruction& split) {
  const Attribute* given = split.attributes().find("delimiter");
  const std::string delimiter = given ? std::get<std::string>(*given) : "";
  int64_t max = split.attributes().integer("pieces"), splits = split.attributes().integer("splits", max);
  RuntimeCall call(context, split, "text_split");
  call.read(split.operand(0));
  call.constant(text_table({delimiter}).bytes, "delimiter");
  call.write(result_of(split, 0));
  call.write(result_of(split, 1));
  call.status();
  call.elements(split.type(1));
  call.number(static_cast<int64_t>(delimiter.size()));
  call.number(splits);
  call.number(max);
  call.finish("firn_rt2_text_split");
}

} // namespace

TextTable text_table(const Strings& strings) {
  std::vector<int64_t> places;
  std::string all;
  for (const std::string& each : strings) {
    places.push_back(static_cast<int64_t>(all.size()));
    places.push_back(static_cast<int64_t>(each.size()));
    all += each;
  }
  if (strings.empty()) places = {0, 0};
  if (all.empty()) all.push_back('\0');
  auto bytes = std::make_shared<Literal>(DType::U8, std::vector<int64_t>{static_cast<int64_t>(all.size())});
  std::transform(all.begin(), all.end(), bytes->mutable_bytes().begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  return {Literal::of(DType::U32, {static_cast<int64_t>(places.size()) / 2, 2}, places), bytes};
}

void emit_text_constant(LoweringContext& context, const Instruction& constant, BufferSlice place) {
  const Strings& strings = constant.literal()->string_values();
  if (strings.empty()) return;
  TextTable table = text_table(strings);
  RuntimeCall call(context, constant.location(), "text_constants");
  call.constant(table.places, "places");
  call.constant(table.bytes, "bytes");
  call.write(place, Scalar::I128, static_cast<int64_t>(strings.size()), "out");
  call.number(static_cast<int64_t>(strings.size()));
  call.finish("firn_rt2_text_constants");
}

void emit_text(LoweringContext& context, const Instruction& instruction, const plan::FixedPlan&) {
  switch (instruction.opcode()) {
  case Opcode::Compare: return emit_compare(context, instruction);
  case Opcode::Convert: return emit_convert(context, instruction);
  case Opcode::TextConcatenate: return emit_text_concatenate(context, instruction);
  case Opcode::TextCase: return emit_case(context, instruction);
  case Opcode::TextFind: return emit_find(context, instruction);
  case Opcode::TextMatch: return emit_match(context, instruction);
  case Opcode::TextSplit: return emit_split(context, instruction);
  default: FIRN_UNREACHABLE("no code for text of " + std::string(opcode_name(instruction.opcode())));
  }
}

} // namespace firn::lower
