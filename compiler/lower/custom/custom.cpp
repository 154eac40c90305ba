// Calls of the program's functions: a constant says which tensors there are (include/firn/custom_op.h), the
// call gives their addresses and dims.
#include "compiler/graph/custom_call.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/lower/layout_packing.h"
#include "compiler/plan/fixed/plan.h"
#include "include/firn/abi.h"
#include "include/firn/custom_op.h"

#include <algorithm>

namespace firn::lower {

namespace {

using kernel::Register;
using kernel::Scalar;

// The FIRN_DTYPE_ number of a dtype that has_custom_dtype() admits.
int64_t number_of(DType dtype) {
  switch (dtype) {
  case DType::F32: return FIRN_DTYPE_F32;
  case DType::U8: return FIRN_DTYPE_U8;
  case DType::I8: return FIRN_DTYPE_I8;
  case DType::U16: return FIRN_DTYPE_U16;
  case DType::I16: return FIRN_DTYPE_I16;
  case DType::I32: return FIRN_DTYPE_I32;
  case DType::I64: return FIRN_DTYPE_I64;
  case DType::String: return FIRN_DTYPE_STRING;
  case DType::Bool: return FIRN_DTYPE_BOOL;
  case DType::F16: return FIRN_DTYPE_F16;
  case DType::F64: return FIRN_DTYPE_F64;
  case DType::U32: return FIRN_DTYPE_U32;
  case DType::U64: return FIRN_DTYPE_U64;
  case DType::BF16: return FIRN_DTYPE_BF16;
  default:
    FIRN_UNREACHABLE("a type that functions of programs do not take: " + std::string(dtype_name(dtype)));
  }
}

// The words that describe the tensors of a call, as include/firn/custom_op.h lays them out: counts, then
// FIRN_CUSTOM_WORDS of each tensor, then names.
class Description {
public:
  Description(size_t inputs, size_t outputs, size_t attributes) {
    for (size_t count : {inputs, outputs, attributes}) words_.push_back(static_cast<int64_t>(count));
  }
  void add(const Type& type, std::string name = "") {
    for (int64_t word : {number_of(type.dtype), int64_t{type.rank()}, data_++, dims_, int64_t{0}})
      words_.push_back(word);
    dims_ += type.rank();
    names_.push_back(std::move(name));
  }
  void add_left_out() {
    for (int64_t word : {0, 0, -1, 0, 0}) words_.push_back(word);
    names_.emplace_back();
  }
  LiteralRef words() const {
    std::vector<int64_t> all = words_;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (names_[i].empty()) continue;
      all[FIRN_CUSTOM_FIRST + (i + 1) * FIRN_CUSTOM_WORDS - 1] = static_cast<int64_t>(all.size());
      for (size_t at = 0; at <= names_[i].size(); at += 4) {
        uint32_t word = 0; // the zero behind the name, too
        for (size_t byte = 0; byte < 4 && at + byte < names_[i].size(); ++byte)
          word |= static_cast<uint32_t>(static_cast<unsigned char>(names_[i][at + byte])) << 8 * byte;
        all.push_back(static_cast<int32_t>(word));
      }
    }
    return Literal::of(DType::I32, {static_cast<int64_t>(all.size())}, all);
  }

private:
  std::vector<int64_t> words_;
  std::vector<std::string> names_;
  int64_t data_ = 0, dims_ = 0;
};

Description describe_call(const Instruction& custom, const CustomCall& call) {
  Description description(call.inputs.size(), static_cast<size_t>(custom.num_results()),
                          call.attributes.size());
  int next = 0;
  for (int64_t operand : call.inputs)
    operand < 0 ? description.add_left_out() : description.add(custom.operand(next++).type());
  for (int i = 0; i < custom.num_results(); ++i) description.add(custom.type(i));
  for (const std::string& name : call.attributes) description.add(custom.operand(next++).type(), name);
  return description;
}

} // namespace

void emit_custom(LoweringContext& context, const Instruction& custom, const plan::FixedPlan&) {
  KernelMaker maker(context, custom, "custom");
  CustomCall call = custom_call_of(custom);
  LiteralRef words = describe_call(custom, call).words();
  auto bytes = static_cast<int64_t>(words->bytes().size());
  BufferSlice info{
      context.add_constant(words, layout_packing(words->type(), bytes), custom.location() + ".info"), 0};
  std::vector<int> buffers{
      maker.parameter(info, Scalar::I32, words->num_elements(), /*written=*/false, "info")};
  int64_t room = std::max<int64_t>(call.workspace, 1);
  buffers.push_back(maker.parameter({context.add_scratch_buffer(room, "workspace"), 0}, Scalar::I8, room,
                                    /*written=*/true, "workspace"));
  std::vector<Register> extents;
  auto add = [&](int buffer, const Type& type) {
    buffers.push_back(buffer);
    for (const Dim& dim : type.dims) extents.push_back(maker.builder().index(dim.extent));
  };
  int inputs = call.num_inputs();
  for (int i = 0; i < inputs; ++i) add(maker.read(custom.operand(i)), custom.operand(i).type());
  for (int i = 0; i < custom.num_results(); ++i) add(maker.write(result_of(custom, i)), custom.type(i));
  for (int i = inputs; i < custom.num_operands(); ++i)
    add(maker.read(custom.operand(i)), custom.operand(i).type());
  int status = maker.parameter(context.status_place(), Scalar::I32, 1, /*written=*/true, "status");

  kernel::Builder& b = maker.builder();
  Register returned = b.call_custom(call.symbol, buffers, extents, call.workspace);
  auto number = [&](int64_t value) { return b.constant_int({Scalar::I32, 1}, value); };
  Register failed = b.compare(kernel::OpKind::SCmp, kernel::Predicate::Ne, returned, number(0));
  b.if_then_else(
      failed,
      [&] {
        // The low 8 bits of what the function returned become the detail of the status.
        Register detail = b.emit(kernel::OpKind::And, {returned, number(255)}, {Scalar::I32, 1});
        detail = b.emit(kernel::OpKind::Shl, {detail, number(8)}, {Scalar::I32, 1});
        Register code = b.emit(kernel::OpKind::Or, {detail, number(FIRN_STATUS_CUSTOM_OP)}, {Scalar::I32, 1});
        b.store(code, status, 0);
        return std::vector<Register>{};
      },
      [] { return std::vector<Register>{}; });
  maker.finish();
}

} // namespace firn::lower
