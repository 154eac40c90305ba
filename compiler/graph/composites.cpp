// Reference bodies of softmax, normalisations and activations.
#include "compiler/graph/composites.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace firn {

namespace {

using Values = std::vector<Value>;

std::vector<int64_t> dims_from(int first, int rank) {
  std::vector<int64_t> dims(static_cast<size_t>(rank - first));
  std::iota(dims.begin(), dims.end(), first);
  return dims;
}

Type with_dtype(Type type, DType dtype) {
  type.dtype = dtype;
  return type;
}

Value mean(GraphBuilder& b, Value x, const std::vector<int64_t>& dims) {
  Value sum = b.reduce(Opcode::Add, x, dims, true);
  return b.binary(Opcode::Divide, sum, count_elements(b, x, dims, x.dtype()));
}

struct Normalized {
  Value y, mean, inverse_deviation;
};

// (x - mean) / sqrt(variance + epsilon), all over `dims`, in x's dtype.
Normalized normalize(GraphBuilder& b, Value x, const std::vector<int64_t>& dims, double epsilon) {
  Value center = mean(b, x, dims);
  Value centered = b.binary(Opcode::Subtract, x, center);
  Value variance = mean(b, b.binary(Opcode::Multiply, centered, centered), dims);
  Value inverse = b.unary(Opcode::Rsqrt, b.binary(Opcode::Add, variance, b.scalar(x.dtype(), epsilon)));
  return {b.binary(Opcode::Multiply, centered, inverse), center, inverse};
}

// A [C] vector as [1,C,1,...] of `rank` dims.
Value per_channel(GraphBuilder& b, Value vector, int rank) {
  std::vector<Dim> dims(static_cast<size_t>(rank), Dim(1));
  dims[1] = vector.type().dims[0];
  return b.reshape(vector, std::move(dims));
}

Value elementwise_composite(GraphBuilder& builder, std::string_view name, Value x, Attributes attributes,
                            const std::function<Value(GraphBuilder&, Value)>& body) {
  return make_composite(builder, name, {x}, {x.type()}, std::move(attributes),
                        [&](GraphBuilder& b, const Values& p) { return Values{body(b, p[0])}; })
      ->result();
}

} // namespace

Instruction* make_composite(GraphBuilder& builder, std::string_view name, std::vector<Value> operands,
                            std::vector<Type> types, Attributes attributes, const CompositeBody& body) {
  attributes.set("name", Word{std::string(name)});
  Instruction* composite =
      builder.make_typed(Opcode::Composite, std::move(operands), std::move(types), std::move(attributes));
  Region& region = composite->add_region();
  Values parameters;
  for (Value operand : composite->operands())
    parameters.push_back(region.add_parameter(operand.type())->result());
  GraphBuilder inside(region);
  inside.set_location(composite->location());
  Values results = body(inside, parameters);
  FIRN_CHECK(static_cast<int>(results.size()) == composite->num_results(),
             "composite body with wrong result count");
  for (size_t i = 0; i < results.size(); ++i)
    FIRN_CHECK(results[i].type() == composite->type(static_cast<int>(i)),
               "composite " + std::string(name) + ": body gives " + results[i].type().to_string() +
                   ", wants " + composite->type(static_cast<int>(i)).to_string());
  region.set_results(std::move(results));
  return composite;
}

Instruction* make_while(GraphBuilder& builder, std::vector<Value> initial, const CompositeBody& condition,
                        const CompositeBody& body) {
  std::vector<Type> types;
  for (Value value : initial) types.push_back(value.type());
  Instruction* loop = builder.make_typed(Opcode::While, std::move(initial), types);
  for (const CompositeBody* write : {&condition, &body}) {
    Region& region = loop->add_region();
    Values parameters;
    for (const Type& type : types) parameters.push_back(region.add_parameter(type)->result());
    GraphBuilder inside(region);
    inside.set_location(loop->location());
    region.set_results((*write)(inside, parameters));
  }
  return loop;
}

DType accumulator_dtype(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 ? DType::F32 : dtype;
}

bool is_composite(const Instruction& instruction, std::string_view name) {
  return instruction.is(Opcode::Composite) && instruction.word("name") == name;
}

Value slice_dim(GraphBuilder& builder, Value x, int dim, int64_t start, int64_t limit) {
  size_t rank = static_cast<size_t>(x.rank());
  std::vector<int64_t> starts(rank, 0), limits, strides(rank, 1);
  for (const Dim& extent : x.type().dims) limits.push_back(extent.is_static() ? extent.value() : -1);
  starts[static_cast<size_t>(dim)] = start;
  limits[static_cast<size_t>(dim)] = limit;
  return builder.slice(x, std::move(starts), std::move(limits), std::move(strides));
}

Value count_elements(GraphBuilder& builder, Value x, const std::vector<int64_t>& dims, DType dtype) {
  int64_t count = 1;
  Value symbolic;
  for (int64_t dim : dims) {
    const Dim& extent = x.type().dims[static_cast<size_t>(dim)];
    if (extent.is_static()) {
      count *= extent.value();
      continue;
    }
    Value size = builder.op(Opcode::DimSize, {x}, {{"dim", dim}});
    symbolic = symbolic ? builder.binary(Opcode::Multiply, symbolic, size) : size;
  }
  if (!symbolic) return builder.scalar(dtype, static_cast<double>(count));
  if (count != 1)
    symbolic =
        builder.binary(Opcode::Multiply, symbolic, builder.scalar(DType::I64, static_cast<double>(count)));
  return builder.convert(symbolic, dtype);
}

Value make_softmax(GraphBuilder& builder, Value x, int dim) {
  return elementwise_composite(
      builder, "softmax", x, {{"dim", int64_t{dim}}}, [dim](GraphBuilder& b, Value whole) {
        Value wide = b.convert(whole, accumulator_dtype(whole.dtype()));
        Value shifted = b.binary(Opcode::Subtract, wide, b.reduce(Opcode::Maximum, wide, {dim}, true));
        Value powers = b.unary(Opcode::Exponential, shifted);
        Value sum = b.reduce(Opcode::Add, powers, {dim}, true);
        return b.convert(b.binary(Opcode::Divide, powers, sum), whole.dtype());
      });
}

Value make_log_softmax(GraphBuilder& builder, Value x, int dim) {
  return elementwise_composite(
      builder, "log_softmax", x, {{"dim", int64_t{dim}}}, [dim](GraphBuilder& b, Value whole) {
        Value wide = b.convert(whole, accumulator_dtype(whole.dtype()));
        Value shifted = b.binary(Opcode::Subtract, wide, b.reduce(Opcode::Maximum, wide, {dim}, true));
        Value sum = b.reduce(Opcode::Add, b.unary(Opcode::Exponential, shifted), {dim}, true);
        return b.convert(b.binary(Opcode::Subtract, shifted, b.unary(Opcode::Log, sum)), whole.dtype());
      });
}

Instruction* make_layer_norm(GraphBuilder& builder, Value x, Value scale, Value bias, int dim, double epsilon,
                             DType stash, bool statistics) {
  Attributes attributes{{"dim", int64_t{dim}}, {"epsilon", epsilon}, {"stash", stash}};
  std::vector<Type> types{x.type()};
  if (statistics) {
    attributes.set("statistics", true);
    Type reduced = with_dtype(x.type(), stash);
    std::fill(reduced.dims.begin() + dim, reduced.dims.end(), Dim(1));
    types.insert(types.end(), 2, reduced);
  }
  Values operands{x, scale};
  if (bias) operands.push_back(bias);
  return make_composite(
      builder, "layer_norm", operands, types, attributes, [&](GraphBuilder& b, const Values& p) {
        Normalized n = normalize(b, b.convert(p[0], stash), dims_from(dim, x.rank()), epsilon);
        Value y = b.binary(Opcode::Multiply, n.y, b.convert(p[1], stash));
        if (p.size() > 2) y = b.binary(Opcode::Add, y, b.convert(p[2], stash));
        y = b.convert(y, x.dtype());
        return statistics ? Values{y, n.mean, n.inverse_deviation} : Values{y};
      });
}

Value make_rms_norm(GraphBuilder& builder, Value x, Value scale, int dim, double epsilon, DType stash) {
  Attributes attributes{{"dim", int64_t{dim}}, {"epsilon", epsilon}, {"stash", stash}};
  Type type = with_dtype(x.type(), scale.dtype());
  return make_composite(builder, "rms_norm", {x, scale}, {type}, attributes,
                        [&](GraphBuilder& b, const Values& p) {
                          Value wide = b.convert(p[0], stash);
                          Value square =
                              mean(b, b.binary(Opcode::Multiply, wide, wide), dims_from(dim, x.rank()));
                          Value inverse =
                              b.unary(Opcode::Rsqrt, b.binary(Opcode::Add, square, b.scalar(stash, epsilon)));
                          Value y = b.binary(Opcode::Multiply, wide, inverse);
                          y = b.binary(Opcode::Multiply, y, b.convert(p[1], stash));
                          return Values{b.convert(y, scale.dtype())};
                        })
      ->result();
}

Value make_instance_norm(GraphBuilder& builder, Value x, Value scale, Value bias, double epsilon) {
  return make_composite(builder, "instance_norm", {x, scale, bias}, {x.type()}, {{"epsilon", epsilon}},
                        [&](GraphBuilder& b, const Values& p) {
                          DType wide = accumulator_dtype(x.dtype());
                          Value y = normalize(b, b.convert(p[0], wide), dims_from(2, x.rank()), epsilon).y;
                          Value factor = per_channel(b, b.convert(p[1], wide), x.rank());
                          Value offset = per_channel(b, b.convert(p[2], wide), x.rank());
                          y = b.binary(Opcode::Add, b.binary(Opcode::Multiply, y, factor), offset);
                          return Values{b.convert(y, x.dtype())};
                        })
      ->result();
}

Value make_group_norm(GraphBuilder& builder, Value x, Value scale, Value bias, int64_t groups, double epsilon,
                      DType stash) {
  Attributes attributes{{"groups", groups}, {"epsilon", epsilon}, {"stash", stash}};
  return make_composite(builder, "group_norm", {x, scale, bias}, {x.type()}, attributes,
                        [&](GraphBuilder& b, const Values& p) {
                          const std::vector<Dim>& dims = x.type().dims;
                          std::vector<Dim> split{dims[0], Dim(groups), Dim(dims[1].value() / groups)};
                          split.insert(split.end(), dims.begin() + 2, dims.end());
                          Value grouped = b.reshape(b.convert(p[0], stash), split);
                          Value y = normalize(b, grouped, dims_from(2, grouped.rank()), epsilon).y;
                          y = b.reshape(y, dims);
                          Value factor = per_channel(b, b.convert(p[1], stash), x.rank());
                          Value offset = per_channel(b, b.convert(p[2], stash), x.rank());
                          y = b.binary(Opcode::Add, b.binary(Opcode::Multiply, y, factor), offset);
                          return Values{b.convert(y, x.dtype())};
                        })
      ->result();
}

Instruction* make_batch_norm(GraphBuilder& builder, Value x, Value scale, Value bias, double epsilon) {
  std::vector<int64_t> dims = dims_from(2, x.rank());
  dims.insert(dims.begin(), 0);
  Type statistics = x.type();
  for (int64_t d : dims) statistics.dims[static_cast<size_t>(d)] = Dim(1);
  return make_composite(
      builder, "batch_norm", {x, scale, bias}, {x.type(), statistics, statistics}, {{"epsilon", epsilon}},
      [&](GraphBuilder& b, const Values& p) {
        Value center = mean(b, p[0], dims);
        Value centered = b.binary(Opcode::Subtract, p[0], center);
        Value variance = mean(b, b.binary(Opcode::Multiply, centered, centered), dims);
        Value stabilised = b.binary(Opcode::Add, variance, b.scalar(x.dtype(), epsilon));
        // One multiplication and one addition per element.
        Value factor = b.binary(Opcode::Divide, p[1], b.unary(Opcode::Sqrt, stabilised));
        Value offset = b.binary(Opcode::Subtract, p[2], b.binary(Opcode::Multiply, center, factor));
        return Values{b.binary(Opcode::Add, b.binary(Opcode::Multiply, p[0], factor), offset), center,
                      variance};
      });
}

static constexpr double kSqrt2OverPi = 0.79788456080286535588;

Value make_gelu(GraphBuilder& builder, Value x, bool tanh_approximation) {
  Attributes attributes{{"approximate", Word{tanh_approximation ? "tanh" : "none"}}};
  return elementwise_composite(builder, "gelu", x, attributes, [&](GraphBuilder& b, Value v) {
    auto number = [&](double value) { return b.scalar(v.dtype(), value); };
    if (tanh_approximation) {
      // x/2 (1 + tanh(u)) = x logistic(2 u) with u = sqrt(2/pi) (x + 0.044715 x^3)
      Value factor = b.binary(
          Opcode::Add, number(2 * kSqrt2OverPi),
          b.binary(Opcode::Multiply, b.binary(Opcode::Multiply, v, v), number(2 * kSqrt2OverPi * 0.044715)));
      return b.binary(Opcode::Multiply, v, b.unary(Opcode::Logistic, b.binary(Opcode::Multiply, v, factor)));
    }
    Value inner = b.unary(Opcode::Erf, b.binary(Opcode::Multiply, v, number(0.70710678118654752440)));
    Value half = b.binary(Opcode::Multiply, v, number(0.5));
    return b.binary(Opcode::Multiply, half, b.binary(Opcode::Add, inner, number(1)));
  });
}

Value make_silu(GraphBuilder& builder, Value x) {
  return elementwise_composite(builder, "silu", x, {}, [](GraphBuilder& b, Value v) {
    return b.binary(Opcode::Multiply, v, b.unary(Opcode::Logistic, v));
  });
}

Value make_hard_swish(GraphBuilder& builder, Value x) {
  return elementwise_composite(builder, "hard_swish", x, {}, [](GraphBuilder& b, Value v) {
    auto number = [&](double value) { return b.splat_like(v, value); };
    Value linear = b.binary(Opcode::Multiply, v, number(1.0 / 6.0));
    Value gate = b.op(Opcode::Clamp, {number(0), b.binary(Opcode::Add, linear, number(0.5)), number(1)});
    return b.binary(Opcode::Multiply, v, gate);
  });
}

Value softplus(GraphBuilder& b, Value x) {
  // max(x, 0) + log1p(exp(-|x|)): NaN stays, infinity stays.
  Value decay = b.unary(Opcode::Exponential, b.unary(Opcode::Negate, b.unary(Opcode::Abs, x)));
  Value positive = b.binary(Opcode::Maximum, x, b.scalar(x.dtype(), 0));
  return b.binary(Opcode::Add, positive, b.unary(Opcode::LogPlusOne, decay));
}

Value make_mish(GraphBuilder& builder, Value x) {
  return elementwise_composite(builder, "mish", x, {}, [](GraphBuilder& b, Value v) {
    // With p = logistic(v), tanh(softplus(v)) = p (2 - p) / (1 + (1 - p)^2): nothing cancels at either end.
    auto number = [&](double value) { return b.splat_like(v, value); };
    Value p = b.unary(Opcode::Logistic, v), rest = b.binary(Opcode::Subtract, number(1), p);
    Value above = b.binary(Opcode::Multiply, p, b.binary(Opcode::Subtract, number(2), p));
    Value below = b.binary(Opcode::Add, b.binary(Opcode::Multiply, rest, rest), number(1));
    return b.binary(Opcode::Multiply, v, b.binary(Opcode::Divide, above, below));
  });
}

} // namespace firn
