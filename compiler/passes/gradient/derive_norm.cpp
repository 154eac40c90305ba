// Adjoints of normalisations: one formula over the dims that each of them normalises.
#include "compiler/graph/composites.h"
#include "compiler/passes/gradient/adjoints.h"

#include <algorithm>

namespace firn::gradient {
namespace {

// A normalisation as y = (x - mean) / deviation * scale + bias, where x has `dims`, statistics are taken over
// `normalised` ones of them, and scale and bias have shapes that broadcast to x.
struct NormForm {
  std::vector<Dim> dims;
  std::vector<int64_t> normalised;
  std::vector<Dim> scale, bias;
  DType stash = DType::F32;
  bool centres = true;
};

// [C] as [1,C,1,...] of `rank` dims
std::vector<Dim> per_channel(const Dim& channels, int rank) {
  std::vector<Dim> dims(static_cast<size_t>(rank), Dim(1));
  dims[1] = channels;
  return dims;
}

NormForm form_of(const Instruction& norm) {
  const Type& x = norm.operand(0).type();
  const DType* stash = nullptr;
  if (const Attribute* attribute = norm.attributes().find("stash")) stash = std::get_if<DType>(attribute);
  NormForm form;
  form.dims = x.dims;
  form.stash = stash ? *stash : accumulator_dtype(x.dtype);
  form.centres = !is_composite(norm, "rms_norm");
  form.normalised = numbers_below(x.rank(), norm.attributes().integer("dim", 2));
  if (is_composite(norm, "batch_norm")) form.normalised.insert(form.normalised.begin(), 0);
  form.scale = norm.operand(1).type().dims;
  if (norm.num_operands() > 2) form.bias = norm.operand(2).type().dims;
  if (is_composite(norm, "instance_norm")) form.scale = form.bias = per_channel(x.dims[1], x.rank());
  if (!is_composite(norm, "group_norm")) return form;
  Dim groups(norm.attributes().integer("groups")), size(x.dims[1].value() / groups.value());
  form.dims[1] = size;
  form.dims.insert(form.dims.begin() + 1, groups);
  form.normalised = numbers_below(x.rank() + 1, 2);
  form.scale = per_channel(groups, x.rank() + 1);
  form.scale[2] = size;
  form.bias = form.scale;
  return form;
}

// Whether a shape that broadcasts to dims has dim d of them.
bool has_dim(const std::vector<Dim>& shape, const std::vector<Dim>& dims, int64_t d) {
  int64_t own = d - static_cast<int64_t>(dims.size() - shape.size());
  return own >= 0 && shape[static_cast<size_t>(own)] == dims[static_cast<size_t>(d)];
}

class Normalization {
public:
  explicit Normalization(VectorJacobian& v) : v_(v), b_(v.b), form_(form_of(v.primal)) {
    for (int64_t d : form_.normalised) {
      bool varies = has_dim(form_.scale, form_.dims, d) || has_dim(form_.bias, form_.dims, d);
      (varies ? varying_ : constant_).push_back(d);
    }
    Value x = grouped(v.x(0));
    count_ = count_elements(b_, x, form_.normalised, form_.stash);
    read_statistics(x);
    normal_ = b_.binary(Opcode::Multiply, mean_ ? b_.binary(Opcode::Subtract, x, mean_) : x, inverse_);
  }

  void derive() {
    if (v_.dy(0)) derive_result();
    if (v_.primal.num_results() == 1 || !v_.wants(0)) return;
    if (v_.dy(1)) give_x(b_.broadcast_to(per_element(b_.convert(v_.dy(1), form_.stash)), form_.dims));
    if (v_.dy(2)) derive_deviation(b_.convert(v_.dy(2), form_.stash));
  }

private:
  Value times(Value lhs, Value rhs) { return b_.binary(Opcode::Multiply, lhs, rhs); }
  Value per_element(Value sum) { return b_.binary(Opcode::Divide, sum, count_); }
  Value sum(Value value, const std::vector<int64_t>& dims) {
    return dims.empty() ? value : b_.reduce(Opcode::Add, value, dims, /*keep_dims=*/true);
  }
  Value grouped(Value value) { return b_.reshape(b_.convert(value, form_.stash), form_.dims); }
  void give_x(Value value) {
    v_.give(0, b_.convert(b_.reshape(value, v_.x(0).type().dims), v_.x(0).dtype()));
  }
  void give_sum(int operand, Value value, const std::vector<Dim>& shape) {
    Value given = b_.reshape(sum_to(b_, value, shape), v_.x(operand).type().dims);
    v_.give(operand, b_.convert(given, v_.x(operand).dtype()));
  }
  bool gives_variance() const { return is_composite(v_.primal, "batch_norm"); }

  // Mean and 1/deviation: the composite's results where it gives them.
  void read_statistics(Value x) {
    bool has_results = v_.primal.num_results() > 1;
    if (form_.centres) mean_ = has_results ? v_.y(1) : per_element(sum(x, form_.normalised));
    if (has_results && !gives_variance()) {
      inverse_ = v_.y(2);
      return;
    }
    Value centred = mean_ ? b_.binary(Opcode::Subtract, x, mean_) : x;
    Value variance = has_results ? v_.y(2) : per_element(sum(times(centred, centred), form_.normalised));
    Value epsilon = b_.scalar(form_.stash, v_.attributes().number("epsilon", 0));
    inverse_ = b_.unary(Opcode::Rsqrt, b_.binary(Opcode::Add, variance, epsilon));
  }

  // dx = (g - mean(g) - n mean(g n)) / deviation with g = dy scale and n the normalised x. Sums are taken
  // first over dims along which neither scale nor bias varies: the gradients of these need them, too.
  void derive_result() {
    Value dy = grouped(v_.dy(0));
    Value offsets = sum(dy, constant_), factors = sum(times(dy, normal_), constant_);
    if (v_.wants(0)) {
      Value scale = b_.reshape(b_.convert(v_.x(1), form_.stash), form_.scale);
      Value g = times(dy, scale);
      Value products = constant_.empty() ? times(g, normal_) : times(factors, scale);
      Value along = times(normal_, per_element(sum(products, varying_)));
      Value across = b_.binary(Opcode::Subtract, g, along);
      if (form_.centres)
        across = b_.binary(Opcode::Subtract, across, per_element(sum(times(offsets, scale), varying_)));
      give_x(times(across, inverse_));
    }
    if (v_.wants(1)) give_sum(1, factors, form_.scale);
    if (v_.primal.num_operands() > 2 && v_.wants(2)) give_sum(2, offsets, form_.bias);
  }

  // d variance / dx = 2 (x - mean) / count, and 1/deviation falls with half its cube.
  void derive_deviation(Value dy) {
    Value rate = gives_variance() ? b_.binary(Opcode::Divide, times(b_.scalar(form_.stash, 2), dy), inverse_)
                                  : b_.unary(Opcode::Negate, times(dy, times(inverse_, inverse_)));
    give_x(times(normal_, per_element(rate)));
  }

  VectorJacobian& v_;
  GraphBuilder& b_;
  NormForm form_;
  std::vector<int64_t> constant_, varying_; // normalised dims by whether scale or bias varies along them
  Value count_, mean_, inverse_, normal_;
};

} // namespace

void derive_norm(VectorJacobian& v) {
  Normalization(v).derive();
}

} // namespace firn::gradient
