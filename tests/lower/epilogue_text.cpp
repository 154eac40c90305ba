// See epilogue_text.h.
#include "tests/lower/epilogue_text.h"

#include <algorithm>
#include <numeric>

namespace firn::test {
namespace {

int64_t product(const std::vector<int64_t>& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

std::vector<int64_t> with(std::vector<int64_t> dims, size_t dim, int64_t extent) {
  dims[dim] = extent;
  return dims;
}

} // namespace

std::string joined(const std::vector<int64_t>& dims) {
  std::string text;
  for (int64_t dim : dims) text += (text.empty() ? "" : ",") + std::to_string(dim);
  return text;
}

std::string bracketed(const std::vector<int64_t>& dims) {
  return "[" + joined(dims) + "]";
}

std::string plain_type(const std::string& dtype, const std::vector<int64_t>& dims) {
  return dtype + bracketed(dims);
}

std::string blocked_type(const std::string& dtype, const std::vector<int64_t>& dims, const Machine& target) {
  std::vector<int64_t> order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  return plain_type(dtype, dims) + "{" + joined(order) + ":1x" + std::to_string(target.cpu.channel_block()) +
         "}";
}

std::string Epilogue::add_operand(const std::string& dtype, const std::vector<int64_t>& dims) {
  std::string name = prefix_ + std::to_string(next_++);
  read(name, plain_type(dtype, dims));
  return "%" + name + "i";
}

void Epilogue::read(const std::string& name, const std::string& type) {
  operands_.emplace_back(name, type);
}

std::string Epilogue::define(const std::string& code, const std::string& type) {
  std::string name = "%" + prefix_ + "v" + std::to_string(next_++);
  code_ += " " + name + " = " + code + " : " + type;
  return name;
}

std::string Epilogue::indices(const std::vector<int64_t>& dims, int64_t last) {
  std::string name = add_operand("i64", dims);
  ranges_[name.substr(1, name.size() - 2)] = {static_cast<double>(-last - 1), static_cast<double>(last)};
  return name;
}

// A value of `own` dims.
std::string Epilogue::moved(Movement movement, const std::vector<int64_t>& own, size_t dim,
                            const std::string& dtype) {
  std::string type = plain_type(dtype, own), along = std::to_string(dim);
  std::vector<int64_t> zeros(own.size(), 0), ones(own.size(), 1);
  int64_t extent = own[dim];
  std::vector<int64_t> wide = with(own, dim, extent + 3);
  switch (movement) {
  case Movement::None: break;
  case Movement::Gather:
    return define("gather " + add_operand(dtype, wide) + ", " + indices({extent}, extent + 2) +
                      " {axis = " + along + "}",
                  type);
  case Movement::GatherElements:
    return define("gather_elements " + add_operand(dtype, wide) + ", " + indices(own, extent + 2) +
                      " {axis = " + along + "}",
                  type);
  case Movement::DynamicSlice: {
    std::string operands = add_operand(dtype, wide);
    for (size_t d = 0; d < own.size(); ++d) operands += ", " + indices({}, 4);
    return define("dynamic_slice " + operands + " {sizes = " + bracketed(own) + "}", type);
  }
  case Movement::Slice:
    return define("slice " + add_operand(dtype, wide) + " {starts = " + bracketed(with(zeros, dim, 3)) +
                      ", limits = " + bracketed(wide) + ", strides = " + bracketed(ones) + "}",
                  type);
  case Movement::StridedSlice:
    return define("slice " + add_operand(dtype, with(own, dim, 2 * extent)) + " {starts = " +
                      bracketed(with(zeros, dim, 1)) + ", limits = " + bracketed(with(own, dim, 2 * extent)) +
                      ", strides = " + bracketed(with(ones, dim, 2)) + "}",
                  type);
  case Movement::Reverse:
    return define("reverse " + add_operand(dtype, own) + " {dims = [" + along + "]}", type);
  case Movement::Pad: {
    if (extent == 1) break;
    std::string operands = add_operand(dtype, with(own, dim, extent - 1)) + ", " + add_operand(dtype, {});
    bool low = next_ % 2 == 0;
    return define("pad " + operands + " {low = " + bracketed(with(zeros, dim, low)) + ", high = " +
                      bracketed(with(zeros, dim, !low)) + ", interior = " + bracketed(zeros) + "}",
                  type);
  }
  case Movement::Concatenate: {
    if (extent == 1) break;
    int64_t first = 1 + next_ % (extent - 1);
    return define("concatenate " + add_operand(dtype, with(own, dim, first)) + ", " +
                      add_operand(dtype, with(own, dim, extent - first)) + " {dim = " + along + "}",
                  type);
  }
  case Movement::Transpose: {
    std::vector<int64_t> order(own.size()), turned;
    for (size_t d = 0; d < own.size(); ++d) order[d] = static_cast<int64_t>(own.size() - 1 - d);
    turned.assign(own.rbegin(), own.rend());
    return define("transpose " + add_operand(dtype, turned) + " {permutation = " + bracketed(order) + "}",
                  type);
  }
  case Movement::Reshape: return define("reshape " + add_operand(dtype, {product(own)}), type);
  case Movement::Select:
    return define("select " + add_operand("bool", own) + ", " + add_operand(dtype, own) + ", " +
                      add_operand(dtype, own),
                  type);
  }
  return add_operand(dtype, own);
}

void Epilogue::add(Movement movement, int kept, int dim, const std::string& dtype) {
  std::vector<int64_t> own = dims_, all(dims_.size());
  for (size_t d = 0; d < own.size(); ++d)
    if (!(kept >> d & 1)) own[d] = 1;
  std::iota(all.begin(), all.end(), 0);
  std::string value = moved(movement, own, static_cast<size_t>(dim), dtype);
  if (dtype != dtype_) value = define("convert " + value + " {to = " + dtype_ + "}", plain_type(dtype_, own));
  value = define("broadcast_in_dim " + value + " {dims = " + bracketed(all) + "}", type_);
  sum_ = define("add " + sum_ + ", " + value, type_);
}

void Epilogue::add_random(std::mt19937& random, int count) {
  static constexpr const char* dtypes[] = {"f32", "f32", "f16", "i8", "i32", "bf16", "bool"};
  for (int i = 0; i < count; ++i) {
    auto movement = static_cast<Movement>(random() % (2 * kMovements)); // half of them lie as they are
    if (static_cast<int>(movement) >= kMovements) movement = Movement::None;
    int kept = static_cast<int>(random() % (1u << dims_.size())),
        dim = static_cast<int>(random() % dims_.size());
    add(movement, random() % 2 ? kept : kept | 1 << dim, dim, dtypes[random() % std::size(dtypes)]);
  }
}

std::string Epilogue::parameters(const std::string& suffix) const {
  std::string text;
  for (const auto& [name, type] : operands_) text += ", %" + name + suffix + ": " + type;
  return text;
}

std::string Epilogue::arguments(const std::string& suffix) const {
  std::string text;
  for (const auto& [name, type] : operands_) text += ", %" + name + suffix;
  return text;
}

std::string Epilogue::fusion(const std::string& name, const std::string& value, const std::string& value_type,
                             const std::string& kind, const std::string& op,
                             const std::string& suffix) const {
  return " %" + name + " = fusion " + value + arguments(suffix) + " {kind = " + kind +
         "} region (%p: " + value_type + parameters("i") + ") { " + op + " : " + type_ + code_ + " return " +
         sum_ + " } : " + type_;
}

} // namespace firn::test
