// Constants with their packings, and what those are computed from, as a function.
#include "compiler/lower/prepare.h"

#include "compiler/graph/derivation.h"
#include "compiler/graph/packing.h"
#include "compiler/kernel/passes/prepare_program.h"
#include "compiler/lower/constant_source.h"

#include <algorithm>
#include <map>

namespace firn::lower {
namespace {

// The dtype of elements for @prepare, which moves them without computing: kernels do not know the sign of
// integers.
DType dtype_of(kernel::Scalar element) {
  switch (element) {
  case kernel::Scalar::I1:
  case kernel::Scalar::I8: return DType::U8;
  case kernel::Scalar::I16: return DType::U16;
  case kernel::Scalar::I32: return DType::U32;
  case kernel::Scalar::I64:
  case kernel::Scalar::Index: return DType::U64;
  case kernel::Scalar::I128: break; // addresses are no constants
  case kernel::Scalar::F16: return DType::F16;
  case kernel::Scalar::BF16: return DType::BF16;
  case kernel::Scalar::F32: return DType::F32;
  case kernel::Scalar::F64: return DType::F64;
  }
  FIRN_UNREACHABLE("elements of no type");
}

// Whether @prepare has anything to write for the constant.
bool has_bytes(const kernel::Constant& constant) {
  return constant.packing.packed_elements > 0;
}

// Whether both read one tensor of the model, as several constants may.
bool is_same_tensor(const kernel::ConstantSource& a, const kernel::ConstantSource& b) {
  return a.owner == b.owner && a.bytes.data() == b.bytes.data() && a.element == b.element && a.dims == b.dims;
}

// How the literal follows from others, if a program may give other weights for these (Literal::refittable);
// else null.
const Derivation* derivation_of(const LiteralRef& literal) {
  return literal && !literal->values_may_be_used() ? literal->derivation().get() : nullptr;
}

// The tensors that @prepare reads, each once.
class Sources {
public:
  explicit Sources(const kernel::Program& program) {
    for (const kernel::Constant& constant : program.constants) {
      if (!has_bytes(constant)) continue;
      LiteralRef literal = refittable_literal(constant.source);
      derivation_of(literal) ? add_leaves(*literal->derivation()) : add(constant.source);
    }
  }

  size_t number_of(const kernel::ConstantSource& source) const {
    auto same = [&](const kernel::ConstantSource& known) { return is_same_tensor(known, source); };
    return static_cast<size_t>(std::find_if(all_.begin(), all_.end(), same) - all_.begin());
  }
  const std::vector<kernel::ConstantSource>& all() const { return all_; }

  // A tensor of the model that others are computed from.
  static kernel::ConstantSource leaf(const LiteralRef& literal, const std::string& name) {
    return source_of(
        literal,
        padded_copy(bit_width(literal->dtype()) / 8, literal->num_elements(), literal->num_elements()), name);
  }

private:
  void add(const kernel::ConstantSource& source) {
    if (number_of(source) == all_.size()) all_.push_back(source);
  }

  void add_leaves(const Derivation& derivation) {
    for (size_t i = 0; i < derivation.operands.size(); ++i) {
      const LiteralRef& operand = derivation.operands[i];
      if (const Derivation* inner = derivation_of(operand))
        add_leaves(*inner);
      else if (!operand->values_may_be_used())
        add(leaf(operand, derivation.names[i]));
    }
  }

  std::vector<kernel::ConstantSource> all_;
};

class PrepareBuilder {
public:
  PrepareBuilder(const kernel::Program& program, Function& function)
      : program_(program), sources_(program), function_(function), body_(function.body()), builder_(body_) {}

  void build() {
    for (const kernel::ConstantSource& source : sources_.all()) {
      LiteralRef literal = refittable_literal(source);
      bool is_typed = literal && !is_sub_byte(literal->dtype()) && literal->dims() == source.dims;
      body_.add_parameter(
          Type::tensor_of(is_typed ? literal->dtype() : dtype_of(source.element), source.dims));
      function_.parameter_names.push_back(source.name);
    }
    std::vector<Value> results;
    for (const kernel::Constant& constant : program_.constants) {
      if (!has_bytes(constant)) continue;
      results.push_back(packed(constant));
      function_.result_names.push_back(program_.buffers[static_cast<size_t>(constant.buffer)].name);
    }
    body_.set_results(std::move(results));
    function_.aliases.assign(body_.results().size(), -1);
  }

private:
  Value parameter(const kernel::ConstantSource& source) {
    return body_.parameter(static_cast<int>(sources_.number_of(source)));
  }

  Value packed(const kernel::Constant& constant) {
    builder_.set_location(constant.source.name);
    LiteralRef literal = refittable_literal(constant.source);
    Value source = derivation_of(literal) ? value_of(literal, "") : parameter(constant.source);
    bool as_it_is = is_padded_copy(constant.packing) &&
                    constant.packing.packed_elements == constant.packing.source_elements;
    if (as_it_is) return builder_.reshape(source, {Dim(constant.packing.packed_elements)});
    return make_pack(builder_, source, constant.packing);
  }

  // The literal, computed anew from those that it comes from.
  Value value_of(const LiteralRef& literal, const std::string& name) {
    if (literal->values_may_be_used()) return builder_.constant(Literal::plain(literal));
    const Derivation* derivation = derivation_of(literal);
    if (!derivation) return parameter(Sources::leaf(literal, name));
    auto [known, is_new] = derived_.try_emplace(derivation->module.get());
    if (!is_new) return known->second[static_cast<size_t>(derivation->result)];
    std::vector<Value> operands;
    for (size_t i = 0; i < derivation->operands.size(); ++i)
      operands.push_back(value_of(derivation->operands[i], derivation->names[i]));
    std::vector<Value> results = body_.inline_region(derivation->module->main().body(), operands);
    derived_[derivation->module.get()] = results;
    return results[static_cast<size_t>(derivation->result)];
  }

  const kernel::Program& program_;
  Sources sources_;
  Function& function_;
  Region& body_;
  GraphBuilder builder_;
  std::map<const Module*, std::vector<Value>> derived_;
};

} // namespace

bool needs_preparing(const kernel::Program& program) {
  return kernel::needs_preparing(program) ||
         std::any_of(program.constants.begin(), program.constants.end(),
                     [](const kernel::Constant& constant) {
                       return derivation_of(refittable_literal(constant.source)) != nullptr;
                     });
}

std::vector<kernel::ConstantSource> prepare_sources(const kernel::Program& program) {
  return Sources(program).all();
}

std::unique_ptr<Module> make_prepare_module(const kernel::Program& program) {
  auto module = std::make_unique<Module>(program.name + ".prepare");
  PrepareBuilder(program, module->add_function("prepare")).build();
  return module;
}

} // namespace firn::lower
