// See growth.h.
#include "tests/random/growth.h"

#include "tests/random/conditioning.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace firn::test {

bool Growth::is_constant(const std::string& name) const {
  return std::find(graph_.constants.begin(), graph_.constants.end(), name) != graph_.constants.end();
}

Names Growth::add_many(const std::string& op, const Names& inputs, int outputs,
                       const std::vector<Message>& attributes) {
  return add_region(op, inputs, {}, outputs, attributes);
}

Names Growth::add_region(const std::string& op, const Names& inputs, const Names& captures, int outputs,
                         const std::vector<Message>& attributes) {
  TestNode node{op, inputs, captures, {}, attributes};
  for (int i = 0; i < outputs; ++i) node.outputs.push_back(fresh_name("v"));
  return stay(std::move(node));
}

Names Growth::add_bounded(const std::string& op, const Names& inputs, int outputs,
                          const std::vector<Message>& attributes, std::vector<TestBound> bounds,
                          std::vector<TestEnd> ends) {
  TestNode node{op, inputs, {}, {}, attributes, {}, std::move(bounds), std::move(ends)};
  for (int i = 0; i < outputs; ++i) node.outputs.push_back(fresh_name("v"));
  for (TestBound& bound : node.bounds)
    if (bound.value.empty()) bound.value = node.outputs[0];
  return stay(std::move(node));
}

Names Growth::add_group(const std::string& op, const Names& inputs, const Names& outputs,
                        const std::vector<Message>& group) {
  return stay({op, inputs, {}, outputs, {}, group});
}

Names Growth::stay(TestNode node) {
  const Names nothing(node.outputs.size());
  for (std::string& name : node.inputs) {
    if (name.empty()) return nothing;
    if (name == kAbsent) name.clear();
  }
  std::vector<std::vector<TestValue>> results;
  bool counted = graph_.counted;
  for (size_t run = 0; run < graph_.runs.size(); ++run) {
    NodeOutcome outcome = evaluate_node(graph_.runs[run], node, random);
    // Operands are drawn for the first run; other runs may have too few elements for the node.
    if (run == 0 && !outcome.refusal.empty() && refusal_.empty()) {
      refusal_ = node.op + "(";
      for (const std::string& name : node.operands()) refusal_ += literal(name).type().to_string() + " ";
      refusal_ += "): " + outcome.refusal;
    }
    if (outcome.results.size() != node.outputs.size()) return nothing;
    for (const TestValue& result : outcome.results)
      if (result.literal->num_elements() > 8 * max_elements_) return nothing;
    counted |= outcome.counted;
    results.push_back(std::move(outcome.results));
  }
  bool was_counted = std::exchange(graph_.counted, counted);
  graph_.nodes.push_back(node);
  if (graph_.is_open() && !is_importable(node.outputs)) {
    graph_.nodes.pop_back();
    graph_.counted = was_counted;
    return nothing;
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    for (size_t run = 0; run < graph_.runs.size(); ++run) graph_.runs[run][node.outputs[i]] = results[run][i];
    pool_.push_back(node.outputs[i]);
  }
  for (const std::string& name : node.operands()) ++uses_[name];
  return node.outputs;
}

bool Growth::is_importable(const Names& outputs) const {
  Names all = std::exchange(graph_.outputs, outputs);
  for (const auto& [input, output] : graph_.states)
    if (std::find(outputs.begin(), outputs.end(), output) == outputs.end()) graph_.outputs.push_back(output);
  DiagnosticList diagnostics;
  bool fine =
      onnx::import_onnx_bytes("model.onnx", graph_.encode(), graph_.import_options(), diagnostics) != nullptr;
  graph_.outputs = std::move(all);
  return fine;
}

std::string Growth::add(const std::string& op, const Names& inputs, const std::vector<Message>& attributes) {
  return add_many(op, inputs, 1, attributes)[0];
}

std::string Growth::constant(LiteralRef literal) {
  std::string name = fresh_name("c");
  graph_.constants.push_back(name);
  for (Values& values : graph_.runs) values[name] = {literal, 0, /*known=*/true};
  return name;
}

// The elements of `literal` in dims of another run.
static LiteralRef in_other_order(const Literal& literal, const Dims& dims, RandomSource& random) {
  auto result = std::make_shared<Literal>(literal.dtype(), dims);
  int64_t count = literal.num_elements();
  Dims place(dims.size(), 0);
  for (int64_t i = 0; i < result->num_elements(); ++i) {
    if (is_float(literal.dtype())) {
      result->set_double(i, literal.get_double(random.between(0, count - 1)));
    } else if (literal.dtype() == DType::Bool) {
      result->set_int(i, random.between(0, 1));
    } else {
      // The corner that remains: positions that were all different still are.
      int64_t from = 0;
      for (size_t axis = 0; axis < dims.size(); ++axis)
        from = from * literal.dims()[axis] + place[axis] % literal.dims()[axis];
      result->set_int(i, literal.get_int(from));
    }
    for (size_t axis = dims.size(); axis-- > 0 && ++place[axis] == dims[axis];) place[axis] = 0;
  }
  return result;
}

std::string Growth::input(LiteralRef literal) {
  bool first = true;
  return input_in_each(literal->dims(), [&](const Dims& dims) -> LiteralRef {
    if (std::exchange(first, false) || literal->num_elements() == 0) return literal;
    return in_other_order(*literal, dims, random);
  });
}

std::string Growth::input_in_each(const Dims& dims, const std::function<LiteralRef(const Dims&)>& make) {
  std::string name = fresh_name("x");
  for (size_t run = 0; run < graph_.runs.size(); ++run)
    graph_.runs[run][name] = {make(graph_.dims_in(run, dims))};
  graph_.inputs.push_back(name);
  pool_.push_back(name);
  return name;
}

void Growth::make_state(const std::string& input, const std::string& output) {
  for (const Values& values : graph_.runs)
    if (values.at(input).literal->dims() != dims(input)) return; // a state keeps one shape
  graph_.states.emplace_back(input, output);
  if (graph_.is_open() && !is_importable({output})) graph_.states.pop_back();
}

std::string Growth::fresh(DType dtype, const Dims& dims, Content content) {
  LiteralRef literal = draw_literal(dtype, dims, content);
  return random.chance(0.4) ? constant(literal) : input(literal);
}

LiteralRef Growth::draw_literal(DType dtype, const Dims& dims, Content content) {
  auto literal = std::make_shared<Literal>(dtype, dims);
  int64_t count = literal->num_elements();
  bool full_range =
      content == Content::Any && !is_float(dtype) && bit_width(dtype) <= 16 && random.chance(0.3);
  bool quarters = content != Content::Weights && random.chance(0.5);
  double low = content == Content::Positive ? 0.25 : -2, high = 2;
  if (content == Content::Weights) {
    int64_t fan_in = dims.size() > 1 ? count / std::max<int64_t>(dims[0], 1) : 4;
    high = 1.5 / std::sqrt(static_cast<double>(std::max<int64_t>(fan_in, 2)));
    low = -high;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (dtype == DType::Bool)
      literal->set_int(i, random.between(0, 1));
    else if (full_range)
      literal->set_int(i, static_cast<int64_t>(random.bits() & 0xffff) - (is_signed(dtype) ? 0x8000 : 0));
    else if (!is_float(dtype))
      literal->set_int(i, random.between(content == Content::Positive ? 1 : is_signed(dtype) ? -5 : 0, 5));
    else if (quarters)
      literal->set_double(i, static_cast<double>(random.between(static_cast<int64_t>(low * 4), 8)) / 4);
    else
      literal->set_double(i, random.uniform(low, high));
  }
  return literal;
}

int64_t Growth::draw_dim() {
  if (!graph_.symbols.empty() && random.chance(0.3)) return random.pick(graph_.symbols).range.upper;
  if (random.chance(0.03)) return random.pick({100, 127, 129, 255, 257, 513, 1000});
  return random.chance(0.75) ? random.pick({1, 1, 3, 5, 7, 9, 11, 13, 17, 19, 31, 33})
                             : random.pick({2, 4, 6, 8, 12, 16, 24, 32, 64, 65});
}

Dims Growth::draw_dims(int64_t rank, int64_t max_elements) {
  Dims dims;
  int64_t left = max_elements;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t dim = draw_dim();
    while (dim > left) dim = (dim + 1) / 2;
    left /= dim;
    dims.push_back(dim);
  }
  for (size_t i = dims.size(); i > 1; --i)
    std::swap(dims[i - 1], dims[static_cast<size_t>(random.between(0, static_cast<int64_t>(i) - 1))]);
  return dims;
}

DType Growth::draw_float() {
  return random.pick({DType::F32, DType::F32, DType::F32, DType::F32, DType::F32, DType::F16, DType::F16,
                      DType::BF16, DType::F64});
}

DType Growth::draw_integer() {
  return random.pick({DType::I64, DType::I32, DType::I32, DType::I16, DType::I8, DType::U8, DType::U16,
                      DType::U32, DType::U64});
}

std::string Growth::find(const Predicate& accepts) {
  std::vector<std::string> choices;
  for (size_t i = 0; i < pool_.size(); ++i) {
    // Few operators take these types: they have motifs of their own.
    if (is_sub_byte(dtype(pool_[i])) || is_small_float(dtype(pool_[i]))) continue;
    if (!accepts(literal(pool_[i]))) continue;
    int weight = 1 + (i + 6 >= pool_.size() ? 3 : 0) + (is_used(pool_[i]) ? 0 : 3);
    choices.insert(choices.end(), static_cast<size_t>(weight), pool_[i]);
  }
  return choices.empty() ? "" : random.pick(choices);
}

std::string Growth::float_of_rank(int64_t wanted) {
  auto is_it = [&](const Literal& v) {
    return is_float(v.dtype()) && static_cast<int64_t>(v.dims().size()) == wanted && v.num_elements() > 0;
  };
  if (random.chance(0.8))
    if (std::string name = find(is_it); !name.empty()) return name;
  std::string other = find([&](const Literal& v) { return is_float(v.dtype()) && v.num_elements() > 1; });
  if (other.empty() || wanted == 0 || random.chance(0.3)) {
    Dims dims = draw_dims(wanted);
    return input(draw_literal(draw_float(), dims));
  }
  // Factors of the number of elements, in any order.
  int64_t left = literal(other).num_elements();
  Dims dims(static_cast<size_t>(wanted), 1);
  for (int64_t factor = 2; left > 1; ++factor)
    for (; left % factor == 0; left /= factor)
      dims[static_cast<size_t>(random.between(0, wanted - 1))] *= factor;
  return add("Reshape", {other, reshape_target(std::move(dims))});
}

bool Growth::is_fixed(int64_t extent) const {
  return graph_.runs.size() == 1 || graph_.dims_in(1, {extent})[0] == extent;
}

std::string Growth::reshape_target(Dims dims) {
  for (int64_t& dim : dims)
    if (dim == -1) return constant_ints(dims);
  for (int64_t& dim : dims)
    if (!is_fixed(dim)) {
      dim = -1;
      break;
    }
  return constant_ints(dims);
}

std::string Growth::broadcastable(DType dtype, const Dims& dims) {
  auto fits = [&](const Literal& v) {
    if (v.dtype() != dtype || v.dims().size() > dims.size()) return false;
    for (size_t i = 0; i < v.dims().size(); ++i) {
      int64_t have = v.dims()[v.dims().size() - 1 - i], want = dims[dims.size() - 1 - i];
      if (have != want && have != 1) return false;
    }
    return true;
  };
  if (random.chance(0.4))
    if (std::string name = find(fits); !name.empty()) return name;
  // Which dims are kept; leading ones may be left out.
  Dims kept = dims;
  for (int64_t& dim : kept)
    if (random.chance(0.4)) dim = 1;
  if (!dims.empty() && random.chance(0.4)) {
    // A part of something larger, which may die here.
    std::string whole = find([&](const Literal& v) { return v.dtype() == dtype && v.dims() == dims; });
    if (!whole.empty()) {
      Dims starts, ends, axes;
      for (size_t i = 0; i < dims.size(); ++i)
        if (kept[i] != dims[i]) {
          starts.push_back(random.between(0, dims[i] - 1)), ends.push_back(starts.back() + 1);
          axes.push_back(static_cast<int64_t>(i));
        }
      if (axes.empty()) return whole;
      if (is_float(dtype) && random.chance(0.4))
        return add(random.pick({"ReduceMean", "ReduceMax", "ReduceSum"}), {whole, constant_ints(axes)});
      if (random.chance(0.3)) {
        Dims index{random.between(0, dims[static_cast<size_t>(axes[0])] - 1)};
        return add("Gather", {whole, constant_ints(index)}, {attribute("axis", axes[0])});
      }
      return add("Slice", {whole, constant_ints(starts), constant_ints(ends), constant_ints(axes)});
    }
  }
  while (!kept.empty() && kept.front() == 1 && random.chance(0.5)) kept.erase(kept.begin());
  return fresh(dtype, kept);
}

std::string Growth::away_from_zero(const std::string& x, double offset) {
  if (x.empty()) return "";
  return add("Add", {add("Abs", {x}), constant_scalar(dtype(x), offset)});
}

Growth::Mark Growth::mark() const {
  return {graph_.nodes.size(),  graph_.inputs.size(), graph_.constants.size(),
          graph_.states.size(), pool_.size(),         counter_,
          graph_.counted};
}

void Growth::roll_back(const Mark& mark) {
  for (size_t i = mark.nodes; i < graph_.nodes.size(); ++i) {
    for (const std::string& name : graph_.nodes[i].outputs) graph_.erase_value(name);
    for (const std::string& name : graph_.nodes[i].operands()) --uses_[name];
  }
  for (size_t i = mark.inputs; i < graph_.inputs.size(); ++i) graph_.erase_value(graph_.inputs[i]);
  for (size_t i = mark.constants; i < graph_.constants.size(); ++i) graph_.erase_value(graph_.constants[i]);
  graph_.nodes.resize(mark.nodes);
  graph_.inputs.resize(mark.inputs);
  graph_.constants.resize(mark.constants);
  graph_.states.resize(mark.states);
  pool_.resize(mark.pool);
  counter_ = mark.counter;
  graph_.counted = mark.counted;
}

} // namespace firn::test
