// See adapters.h.
#include "compiler/training/adapters.h"

#include "compiler/graph/blocked_dot.h"
#include "compiler/training/dropout.h"

#include <cmath>

namespace firn::training {
namespace {

constexpr uint64_t kFirstStream = uint64_t{1} << 32; // dropouts have those before

// A product with weights that an adapter may stand beside.
struct Multiplication {
  Instruction* instruction = nullptr;
  Instruction* weight = nullptr; // the largest constant that its weights are computed from
  int64_t inputs = 0, outputs = 0;
};

// The largest constant that a value is computed from; null: it is computed from other things, too.
class Origins {
public:
  Instruction* of(Value value) {
    auto [place, is_new] = known_.emplace(value.def, nullptr);
    if (!is_new) return place->second;
    Instruction& def = *value.def;
    Instruction* largest = def.is(Opcode::Constant) ? &def : nullptr;
    for (Value operand : def.operands()) {
      Instruction* from = of(operand);
      if (!from || def.num_regions() > 0) return nullptr;
      if (!largest || elements(*from) > elements(*largest)) largest = from;
    }
    known_[value.def] = largest;
    return largest;
  }

private:
  static int64_t elements(const Instruction& constant) { return constant.literal()->num_elements(); }
  std::map<const Instruction*, Instruction*> known_;
};

bool is_trainable(const Type& type) {
  return type.is_tensor() && (type.dtype == DType::F32 || type.dtype == DType::F64);
}

bool is_pointwise(const Instruction& convolution) {
  const std::vector<WindowDim>& dims = convolution.attributes().window().dims;
  return convolution.attributes().integer("groups", 1) == 1 &&
         std::all_of(dims.begin(), dims.end(), [](const WindowDim& dim) {
           return dim.size == 1 && dim.pad_low == 0 && dim.pad_high == 0 && dim.input_dilation == 1;
         });
}

class Adaptation {
public:
  Adaptation(Function& main, int64_t seed) : body_(main.body()), seed_(seed) {}

  Expected<AdapterTensors> run(const std::vector<Adapters>& adapters) {
    for (Instruction* instruction : body_.snapshot()) find(*instruction);
    std::vector<const Adapters*> chosen(products_.size(), nullptr);
    for (const Adapters& each : adapters) {
      bool is_found = false;
      for (size_t i = 0; i < products_.size(); ++i) {
        if (!matches_pattern(each.pattern, name_of_constant(*products_[i].weight))) continue;
        is_found = true;
        if (!chosen[i]) chosen[i] = &each;
      }
      if (!is_found) return unknown(each.pattern);
    }
    for (size_t i = 0; i < products_.size(); ++i)
      if (chosen[i])
        if (Result fits = adapt(products_[i], *chosen[i]); !fits) return fits.error();
    return std::move(tensors_);
  }

private:
  void find(Instruction& instruction) {
    const bool is_product =
        instruction.is(Opcode::Dot) || instruction.is(Opcode::Convolution) || is_blocked_dot(instruction);
    if (!is_product || !is_trainable(instruction.type()) ||
        instruction.operand(0).dtype() != instruction.type().dtype)
      return;
    Instruction* weight = origins_.of(instruction.operand(1));
    if (!weight || origins_.of(instruction.operand(0)) || name_of_constant(*weight).empty()) return;
    const Type &x = instruction.operand(0).type(), &w = instruction.operand(1).type();
    Multiplication product{&instruction, weight};
    if (instruction.is(Opcode::Dot)) {
      const auto& contract = instruction.attributes().ints("rhs_contract");
      if (w.rank() != 2 || contract.size() != 1 || !instruction.attributes().ints("rhs_batch").empty())
        return;
      product.inputs = w.dim(static_cast<int>(contract[0]));
      product.outputs = w.dim(static_cast<int>(1 - contract[0]));
    } else if (instruction.is(Opcode::Convolution)) {
      if (!is_pointwise(instruction)) return;
      product.inputs = w.dim(1), product.outputs = w.dim(0);
    } else {
      if (instruction.num_operands() != 3) return;
      product.inputs = x.dim(x.rank() - 1), product.outputs = w.dim(0);
    }
    products_.push_back(product);
  }

  Diagnostic unknown(const std::string& pattern) const {
    std::string names;
    std::set<const Instruction*> seen;
    for (const Multiplication& product : products_)
      if (seen.insert(product.weight).second)
        names += (names.empty() ? "'" : ", '") + name_of_constant(*product.weight) + "'";
    return usage_error("'" + pattern + "' names no weights that an adapter could stand beside: there are " +
                       (names.empty() ? "none" : names));
  }

  // Both tensors of the weight, [inputs, rank] and [rank, outputs], in the product's dtype.
  std::pair<Value, Value> tensors_of(const Multiplication& product, int64_t rank) {
    auto [place, is_new] = made_.try_emplace(product.weight);
    if (!is_new) return place->second;
    const std::string name = name_of_constant(*product.weight);
    const DType dtype = product.instruction->type().dtype;
    auto a = std::make_shared<Literal>(dtype, std::vector<int64_t>{product.inputs, rank});
    const double bound = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(product.inputs, 1)));
    const uint64_t stream = kFirstStream + made_.size();
    for (int64_t i = 0; i < a->num_elements(); ++i)
      a->set_double(i, bound * (2 * drawn_number(seed_, stream, i) - 1));
    auto b = std::make_shared<Literal>(dtype, std::vector<int64_t>{rank, product.outputs});
    tensors_.stay_as_they_are.insert(product.weight);
    place->second = {constant(name + ".lora_a", a), constant(name + ".lora_b", b)};
    return place->second;
  }

  Value constant(const std::string& name, const LiteralRef& literal) {
    tensors_.added.push_back(name);
    Instruction* made = body_.append_constant(literal, first());
    made->set_location(name);
    return made->result();
  }

  // Constants stand in front of all that reads them.
  Instruction* first() const {
    for (const auto& instruction : body_.instructions())
      if (!instruction->is(Opcode::Parameter)) return instruction.get();
    return nullptr;
  }

  Result adapt(const Multiplication& product, const Adapters& options) {
    const std::string name = name_of_constant(*product.weight);
    const int64_t rank = options.rank;
    if (rank > std::min(product.inputs, product.outputs))
      return usage_error("an adapter of rank " + std::to_string(rank) + " is larger than '" + name +
                         "', which multiplies " + std::to_string(product.inputs) + " numbers into " +
                         std::to_string(product.outputs));
    auto [a, b] = tensors_of(product, rank);
    if (a.dim(0) != product.inputs || b.dim(1) != product.outputs ||
        a.dtype() != product.instruction->type().dtype)
      return usage_error("'" + name + "' multiplies in two ways: an adapter wants one");
    Instruction& y = *product.instruction;
    GraphBuilder builder(body_, next(y));
    builder.set_location(y.location());
    Value added = y.is(Opcode::Convolution) ? convolved(builder, y, a, b) : multiplied(builder, y, a, b);
    added = builder.binary(Opcode::Multiply, added,
                           builder.scalar(added.dtype(), options.alpha / static_cast<double>(options.rank)));
    replace_uses_behind(y, builder.binary(Opcode::Add, y.result(), added));
    return {};
  }

  Instruction* next(const Instruction& y) const {
    bool is_behind = false;
    for (const auto& instruction : body_.instructions()) {
      if (is_behind) return instruction.get();
      is_behind = instruction.get() == &y;
    }
    return nullptr;
  }

  // All uses of the product but that of its sum with the adapter's.
  void replace_uses_behind(Instruction& y, Value sum) {
    body_.replace_uses(y.result(), sum);
    for (int i = 0; i < sum.def->num_operands(); ++i)
      if (sum.def->operand(i) == sum) sum.def->set_operand(i, y.result());
  }

  // x A B along the dim that the product sums over.
  static Value multiplied(GraphBuilder& builder, Instruction& y, Value a, Value b) {
    Value x = y.operand(0);
    std::vector<int64_t> contract{x.rank() - 1};
    if (y.is(Opcode::Dot)) contract = y.attributes().ints("lhs_contract");
    auto dot = [&](Value lhs, std::vector<int64_t> dims, Value rhs) {
      return builder.op(Opcode::Dot, {lhs, rhs},
                        {{"lhs_batch", std::vector<int64_t>{}},
                         {"lhs_contract", std::move(dims)},
                         {"rhs_batch", std::vector<int64_t>{}},
                         {"rhs_contract", std::vector<int64_t>{0}}});
    };
    Value narrow = dot(x, std::move(contract), a);
    return dot(narrow, {narrow.rank() - 1}, b);
  }

  static Value convolved(GraphBuilder& builder, Instruction& y, Value a, Value b) {
    auto filter = [&](Value matrix) { // [inputs, outputs] to [outputs, inputs, 1...]
      Value columns = builder.transpose(matrix, {1, 0});
      std::vector<Dim> dims = columns.type().dims;
      dims.resize(static_cast<size_t>(y.type().rank()), Dim(1));
      return builder.reshape(columns, std::move(dims));
    };
    Window plain = y.attributes().window();
    for (WindowDim& dim : plain.dims) dim = WindowDim();
    Value narrow =
        builder.op(Opcode::Convolution, {y.operand(0), filter(a)}, {{"window", y.attributes().window()}});
    return builder.op(Opcode::Convolution, {narrow, filter(b)}, {{"window", plain}});
  }

  Region& body_;
  int64_t seed_;
  Origins origins_;
  std::vector<Multiplication> products_;
  std::map<const Instruction*, std::pair<Value, Value>> made_; // by weight
  AdapterTensors tensors_;
};

} // namespace

Expected<AdapterTensors> add_adapters(Function& main, const std::vector<Adapters>& adapters, int64_t seed) {
  return Adaptation(main, seed).run(adapters);
}

} // namespace firn::training
