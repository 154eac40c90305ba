// See program_interface.h.
#include "compiler/driver/program_interface.h"

#include <algorithm>

namespace firn::driver {
namespace {

using kernel::Program;
using kernel::Space;
using kernel::Tensor;

// The extent, if it is over the program's own; else its bound.
IntExpr told_extent(const Dim& dim, const Program& program) {
  std::vector<SymbolRef> symbols = dim.extent.symbols();
  bool is_known = !dim.counted && std::all_of(symbols.begin(), symbols.end(), [&](const SymbolRef& symbol) {
    return std::find(program.extents.begin(), program.extents.end(), symbol) != program.extents.end();
  });
  return is_known ? dim.extent : IntExpr(dim.extent.upper_bound());
}

Tensor described(const std::string& name, const Type& type, const Program& program) {
  Tensor tensor{name, std::string(dtype_name(type.dtype)), {}, -1};
  for (const Dim& dim : type.dims) tensor.dims.push_back(told_extent(dim, program));
  return tensor;
}

std::string name_at(const std::vector<std::string>& names, size_t number, const char* fallback) {
  return number < names.size() ? names[number] : fallback + std::to_string(number);
}

Expected<Type> type_of(const Tensor& tensor) {
  auto dtype = parse_dtype(tensor.element);
  if (!dtype)
    return model_error("tensor '" + tensor.name + "' has elements of '" + tensor.element +
                       "', which is no type of elements");
  std::vector<int64_t> bounds;
  for (const IntExpr& dim : tensor.dims) bounds.push_back(dim.upper_bound());
  if (!checked_num_elements(bounds))
    return model_error("tensor '" + tensor.name + "' has more elements than any memory");
  return Type::tensor(*dtype, std::vector<Dim>(tensor.dims.begin(), tensor.dims.end()));
}

// Counts inputs, outputs and states as buffers do, each by themselves, and compares their bytes.
class InterfaceCheck {
public:
  explicit InterfaceCheck(const Program& program) : program_(program) {}

  Result add(Space space, const Tensor& tensor, const Type& type) {
    int number = next(space)++;
    const auto bytes = static_cast<int64_t>(type.at_bound().physical_byte_size());
    for (const kernel::Buffer& buffer : program_.buffers) {
      if (buffer.space != space || buffer.io_index != number || buffer.bytes == bytes) continue;
      return model_error("buffer '" + buffer.name + "' has " + std::to_string(buffer.bytes) +
                         " bytes, and tensor '" + tensor.name + "', " + type.to_string() + ", takes " +
                         std::to_string(bytes));
    }
    return {};
  }

  // Every buffer that a caller knows has its tensor.
  Result finish() {
    for (const kernel::Buffer& buffer : program_.buffers) {
      if (buffer.space != Space::Input && buffer.space != Space::Output && buffer.space != Space::State)
        continue;
      if (buffer.io_index < next(buffer.space)) continue;
      std::string word = buffer.space == Space::Output ? "output" : "input";
      return model_error("buffer '" + buffer.name + "' is " + std::string(space_word(buffer.space)) + " " +
                         std::to_string(buffer.io_index) + ", of which the program names " +
                         std::to_string(next(buffer.space)) + ": a line such as '" + word + " \"" +
                         buffer.name + "\" f32[1, 8]', before the buffers, says what callers see");
    }
    return {};
  }

private:
  static std::string_view space_word(Space space) {
    return space == Space::Input ? "input" : space == Space::Output ? "output" : "state";
  }
  int& next(Space space) {
    return space == Space::Input ? inputs_ : space == Space::Output ? outputs_ : states_;
  }

  const Program& program_;
  int inputs_ = 0, outputs_ = 0, states_ = 0;
};

} // namespace

kernel::Interface interface_of(const Function& entry, const std::vector<onnx::VaryingDim>& dims,
                               const Program& program) {
  kernel::Interface interface;
  const Region& body = entry.body();
  for (size_t i = 0; i < body.parameters().size(); ++i)
    interface.parameters.push_back(
        described(name_at(entry.parameter_names, i, "input_"), body.parameters()[i]->type(), program));
  for (size_t i = 0; i < body.results().size(); ++i) {
    interface.results.push_back(
        described(name_at(entry.result_names, i, "output_"), body.results()[i].type(), program));
    if (entry.updates_state(i)) interface.results.back().updates = entry.aliases[i];
  }
  for (const SymbolRef& extent : program.extents) {
    auto dim =
        std::find_if(dims.begin(), dims.end(), [&](const auto& each) { return each.symbol == extent; });
    if (dim == dims.end()) return interface.dims.clear(), interface; // which describe_dims() refuses
    interface.dims.push_back({dim->name, dim->range.multiple, dim->range.values});
  }
  return interface;
}

Expected<std::unique_ptr<Module>> module_of(const Program& program) {
  const kernel::Interface& interface = program.interface;
  auto module = std::make_unique<Module>(program.name);
  Function& main = module->add_function("main");
  InterfaceCheck check(program);
  auto is_state = [&](size_t parameter) {
    return std::any_of(interface.results.begin(), interface.results.end(),
                       [&](const Tensor& result) { return result.updates == static_cast<int>(parameter); });
  };
  for (size_t i = 0; i < interface.parameters.size(); ++i) {
    const Tensor& tensor = interface.parameters[i];
    auto type = type_of(tensor);
    if (!type) return type.error();
    if (Result fits = check.add(is_state(i) ? Space::State : Space::Input, tensor, *type); !fits)
      return fits.error();
    main.body().add_parameter(std::move(*type));
    main.parameter_names.push_back(tensor.name);
  }
  std::vector<Type> types;
  for (const Tensor& tensor : interface.results) {
    auto type = type_of(tensor);
    if (!type) return type.error();
    if (tensor.updates < 0)
      if (Result fits = check.add(Space::Output, tensor, *type); !fits) return fits.error();
    main.result_names.push_back(tensor.name);
    main.aliases.push_back(tensor.updates);
    types.push_back(std::move(*type));
  }
  if (Result complete = check.finish(); !complete) return complete.error();
  std::vector<Value> inputs, results;
  for (Instruction* parameter : main.body().parameters()) inputs.push_back(parameter->result());
  Instruction* computed = main.body().append(Opcode::Custom, inputs, types);
  for (int i = 0; i < computed->num_results(); ++i) results.push_back(computed->result(i));
  main.body().set_results(std::move(results));
  return module;
}

std::vector<onnx::VaryingDim> dims_of(const Program& program) {
  std::vector<onnx::VaryingDim> dims;
  for (size_t i = 0; i < program.extents.size(); ++i) {
    const SymbolRef& symbol = program.extents[i];
    kernel::NamedDim named{symbol->name, 1, {}};
    if (!program.interface.dims.empty()) named = program.interface.dims[i];
    dims.push_back(
        {named.name,
         symbol,
         {symbol->lower * named.multiple, symbol->upper * named.multiple, named.multiple, named.values}});
  }
  return dims;
}

} // namespace firn::driver
