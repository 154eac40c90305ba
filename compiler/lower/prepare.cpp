// Constants with their packings as a function.
#include "compiler/lower/prepare.h"

#include "compiler/graph/packing.h"

#include <algorithm>

namespace firn::lower {
namespace {

// Whole numbers without a sign: what kernels know of elements.
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

bool has_bytes(const kernel::Constant& constant) {
  return constant.packing.packed_elements > 0;
}

// Several constants may be made of one tensor.
bool is_same_tensor(const kernel::ConstantSource& a, const kernel::ConstantSource& b) {
  return a.owner == b.owner && a.bytes.data() == b.bytes.data() && a.element == b.element && a.dims == b.dims;
}

size_t number_of(const std::vector<kernel::ConstantSource>& sources, const kernel::ConstantSource& source) {
  auto same = [&](const kernel::ConstantSource& known) { return is_same_tensor(known, source); };
  return static_cast<size_t>(std::find_if(sources.begin(), sources.end(), same) - sources.begin());
}

} // namespace

std::vector<kernel::ConstantSource> prepare_sources(const kernel::Program& program) {
  std::vector<kernel::ConstantSource> sources;
  for (const kernel::Constant& constant : program.constants)
    if (has_bytes(constant) && number_of(sources, constant.source) == sources.size())
      sources.push_back(constant.source);
  return sources;
}

std::unique_ptr<Module> make_prepare_module(const kernel::Program& program) {
  auto module = std::make_unique<Module>(program.name + ".prepare");
  Function& function = module->add_function("prepare");
  Region& body = function.body();
  std::vector<kernel::ConstantSource> sources = prepare_sources(program);
  for (const kernel::ConstantSource& source : sources) {
    body.add_parameter(Type::tensor_of(dtype_of(source.element), source.dims));
    function.parameter_names.push_back(source.name);
  }
  GraphBuilder builder(body);
  std::vector<Value> results;
  for (const kernel::Constant& constant : program.constants) {
    if (!has_bytes(constant)) continue;
    Value source = body.parameter(static_cast<int>(number_of(sources, constant.source)));
    builder.set_location(constant.source.name);
    bool as_it_is = is_padded_copy(constant.packing) &&
                    constant.packing.packed_elements == constant.packing.source_elements;
    results.push_back(as_it_is ? builder.reshape(source, {Dim(constant.packing.packed_elements)})
                               : make_pack(builder, source, constant.packing));
    function.result_names.push_back(program.buffers[static_cast<size_t>(constant.buffer)].name);
  }
  body.set_results(std::move(results));
  function.aliases.assign(body.results().size(), -1);
  return module;
}

} // namespace firn::lower
