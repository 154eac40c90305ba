// Modifiers and operands of the instruction that is decoded.
#include "compiler/ptx/decoder.h"

#include <algorithm>
#include <bit>

namespace firn::ptx {
namespace {

struct SpecialName {
  std::string_view name;
  Special special;
};

constexpr SpecialName kSpecials[] = {
    {"%tid.x", Special::TidX},
    {"%tid.y", Special::TidY},
    {"%tid.z", Special::TidZ},
    {"%ntid.x", Special::NtidX},
    {"%ntid.y", Special::NtidY},
    {"%ntid.z", Special::NtidZ},
    {"%ctaid.x", Special::CtaidX},
    {"%ctaid.y", Special::CtaidY},
    {"%ctaid.z", Special::CtaidZ},
    {"%nctaid.x", Special::NctaidX},
    {"%nctaid.y", Special::NctaidY},
    {"%nctaid.z", Special::NctaidZ},
    {"%laneid", Special::LaneId},
    {"%warpid", Special::WarpId},
    {"%nwarpid", Special::NwarpId},
    {"%lanemask_eq", Special::LanemaskEq},
    {"%lanemask_le", Special::LanemaskLe},
    {"%lanemask_lt", Special::LanemaskLt},
    {"%lanemask_ge", Special::LanemaskGe},
    {"%lanemask_gt", Special::LanemaskGt},
    {"%smid", Special::SmId},
    {"%nsmid", Special::NsmId},
    {"%gridid", Special::GridId},
    {"%total_smem_size", Special::TotalShared},
    {"%dynamic_smem_size", Special::DynamicShared},
};

} // namespace

bool Decoder::take(std::string_view word) {
  for (size_t i = 0; i < taken_.size(); ++i)
    if (!taken_[i] && at_->words[i] == word) return taken_[i] = true;
  return false;
}

std::optional<Type> Decoder::take_type() {
  for (size_t i = 0; i < taken_.size(); ++i)
    if (!taken_[i])
      if (auto type = type_named(at_->words[i])) {
        taken_[i] = true;
        return type;
      }
  return std::nullopt;
}

Type Decoder::expect_type() {
  if (auto type = take_type()) return *type;
  fail("'" + words() + "' names no type");
  return Type::B32;
}

Rounding Decoder::take_rounding(Rounding otherwise) {
  if (take("rn")) return Rounding::Nearest;
  if (take("rna")) return Rounding::NearestAway;
  if (take("rz")) return Rounding::Zero;
  if (take("rm")) return Rounding::Down;
  if (take("rp")) return Rounding::Up;
  return otherwise;
}

std::string Decoder::words() const {
  std::string text = at_->opcode;
  for (const std::string& word : at_->words) text += "." + word;
  return text;
}

bool Decoder::expect_operands(size_t min, size_t max) {
  if (operands() >= min && operands() <= max) return true;
  fail("'" + words() + "' with " + std::to_string(operands()) + " operands, wanted " + std::to_string(min) +
       (max > min ? " to " + std::to_string(max) : ""));
  return false;
}

uint32_t Decoder::register_row(const Operand& operand) const {
  return frames_.back()->first_row + static_cast<uint32_t>(operand.index);
}

Type Decoder::register_type(const Operand& operand) const {
  return frames_.back()->function->registers[static_cast<size_t>(operand.index)];
}

int Decoder::register_size(const Operand& operand) const {
  return operand.kind == Operand::Kind::Register ? size_of(register_type(operand)) : 0;
}

uint32_t Decoder::constant(uint64_t value) {
  auto [found, is_new] = constants_.emplace(value, kernel_.rows);
  if (is_new) kernel_.constants.emplace_back(new_row(), value);
  return found->second;
}

uint32_t Decoder::immediate(const Operand& operand, Type type) {
  auto bits = static_cast<uint64_t>(operand.value);
  bool is_wide = size_of(type) == 8;
  if (operand.kind == Operand::Kind::Float32) {
    if (!is_wide && size_of(type) == 4) return constant(bits);
    if (type == Type::F64)
      return constant(std::bit_cast<uint64_t>(double{std::bit_cast<float>(static_cast<uint32_t>(bits))}));
  } else if (operand.kind == Operand::Kind::Float64) {
    if (is_wide) return constant(bits);
    if (type == Type::F32)
      return constant(std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits))));
  } else if (type == Type::Pred) {
    return constant(bits != 0 ? ~uint64_t{0} : 0);
  } else if (!is_float(type) || size_of(type) == 2) {
    return constant(bits);
  }
  fail("a constant that is not of type " + std::string(name_of(type)));
  return 0;
}

uint32_t Decoder::symbol(const Operand& operand, Type type) {
  for (const SpecialName& row : kSpecials)
    if (row.name == operand.name) {
      auto [found, is_new] = specials_.emplace(row.special, kernel_.rows);
      if (is_new) kernel_.specials.emplace_back(new_row(), row.special);
      return found->second;
    }
  if (operand.name == "WARP_SZ") return constant(32);
  auto place = find(operand.name);
  if (!place) {
    unsupported("'" + operand.name + "' is neither a variable nor a register that the interpreter knows");
    return 0;
  }
  if (size_of(type) < 4) fail("an address of " + std::to_string(size_of(type)) + " bytes");
  uint64_t value = place->offset + static_cast<uint64_t>(operand.value);
  if (!place->is_dynamic) return constant(value);
  dynamic_constants_.push_back(kernel_.constants.size());
  kernel_.constants.emplace_back(new_row(), value);
  return kernel_.constants.back().first;
}

uint32_t Decoder::negated(uint32_t row) {
  Op op;
  op.execute = negate_predicate_op();
  op.line = at_->line;
  op.a = row;
  op.d = new_row();
  emit(op);
  return op.d;
}

uint32_t Decoder::source(const Operand& operand, Type type) {
  if (operand.kind == Operand::Kind::Register) {
    Type found = register_type(operand);
    if (size_of(found) != size_of(type) || (found == Type::Pred) != (type == Type::Pred))
      fail("a register of type " + std::string(name_of(found)) + ", wanted " + std::string(name_of(type)));
    uint32_t row = register_row(operand);
    return operand.is_negated ? negated(row) : row;
  }
  return wide_source(operand, type);
}

uint32_t Decoder::wide_source(const Operand& operand, Type type) {
  switch (operand.kind) {
  case Operand::Kind::Register:
    if (size_of(register_type(operand)) < size_of(type) || register_type(operand) == Type::Pred)
      fail("a register of type " + std::string(name_of(register_type(operand))) + " for " +
           std::string(name_of(type)));
    return register_row(operand);
  case Operand::Kind::Integer:
  case Operand::Kind::Float32:
  case Operand::Kind::Float64: return immediate(operand, type);
  case Operand::Kind::Symbol: return symbol(operand, type);
  default: fail("an operand that '" + words() + "' does not take"); return 0;
  }
}

uint32_t Decoder::target(const Operand& operand, Type type) {
  if (operand.kind == Operand::Kind::Register && !operand.is_negated) {
    Type found = register_type(operand);
    if (size_of(found) != size_of(type) || (found == Type::Pred) != (type == Type::Pred))
      fail("a register of type " + std::string(name_of(found)) + ", wanted " + std::string(name_of(type)));
    return register_row(operand);
  }
  if (operand.kind == Operand::Kind::Sink) return sink(type);
  fail("a result that is no register");
  return 0;
}

uint32_t Decoder::wide_target(const Operand& operand, Type type) {
  if (operand.kind != Operand::Kind::Register) return target(operand, type);
  if (size_of(register_type(operand)) < size_of(type) || register_type(operand) == Type::Pred)
    fail("a register of type " + std::string(name_of(register_type(operand))) + " for " +
         std::string(name_of(type)));
  return register_row(operand);
}

void Decoder::address(const Operand& operand, Op& op) {
  if (operand.kind != Operand::Kind::Address) return fail("an operand that is no address");
  op.value = operand.value;
  if (operand.elements.empty()) {
    op.a = constant(0);
    return;
  }
  const Operand& base = operand.elements[0];
  if (base.kind == Operand::Kind::Register) {
    op.a = register_row(base);
    op.is_short = register_size(base) == 4;
    if (register_size(base) < 4)
      fail("an address in a register of type " + std::string(name_of(register_type(base))));
    if (op.is_short && (op.space == Space::Global || op.space == Space::Generic))
      fail("an address of 32 bits outside of shared, local and param memory");
    return;
  }
  auto place = find(base.name);
  if (!place) return fail("no variable '" + base.name + "'");
  op.a = constant(0);
  op.value += static_cast<int64_t>(place->offset);
  address_is_dynamic_ = place->is_dynamic;
  if (op.space == Space::Param) op.space = place->space; // variables of calls lie in local memory
  if (op.space == Space::Generic) op.space = place->space;
  bool is_global = place->space == Space::Const || place->space == Space::Global;
  if (op.space != place->space && !(is_global && (op.space == Space::Const || op.space == Space::Global)))
    fail("'" + base.name + "' does not lie in the space of '" + words() + "'");
}

} // namespace firn::ptx
