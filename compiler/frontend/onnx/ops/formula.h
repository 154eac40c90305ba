// Formulas over numbers or values of a run: a Term is a value with the operators of arithmetic, and the
// functions below exist for both. Constants take the dtype of the term beside them.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

class Term {
public:
  Term(NodeContext& node, Value value) : node_(&node), value_(value) {}
  Value value() const { return value_; } // null after a failure

  Term like(double number) const {
    return {*node_, value_ ? node_->scalar(value_.dtype(), number) : Value{}};
  }
  Term op(Opcode opcode, const Term& other) const {
    return {*node_, node_->binary(opcode, value_, other.value_)};
  }
  Term compare(std::string_view direction, const Term& other) const {
    return {*node_, node_->compare(direction, value_, other.value_)};
  }
  Term to(DType dtype) const { return {*node_, value_ ? node_->convert(value_, dtype) : Value{}}; }
  Term abs() const { return {*node_, node_->unary(Opcode::Abs, value_)}; }
  Term floor() const { return {*node_, node_->unary(Opcode::Floor, value_)}; }

  friend Term choose(const Term& condition, const Term& on_true, const Term& on_false) {
    NodeContext& node = *condition.node_;
    return {node, node.select(condition.value_, on_true.value_, on_false.value_)};
  }

private:
  NodeContext* node_;
  Value value_;
};

inline Term operator+(const Term& a, const Term& b) {
  return a.op(Opcode::Add, b);
}
inline Term operator-(const Term& a, const Term& b) {
  return a.op(Opcode::Subtract, b);
}
inline Term operator*(const Term& a, const Term& b) {
  return a.op(Opcode::Multiply, b);
}
inline Term operator/(const Term& a, const Term& b) {
  return a.op(Opcode::Divide, b);
}
inline Term operator+(const Term& a, double b) {
  return a + a.like(b);
}
inline Term operator-(const Term& a, double b) {
  return a - a.like(b);
}
inline Term operator*(const Term& a, double b) {
  return a * a.like(b);
}
inline Term operator/(const Term& a, double b) {
  return a / a.like(b);
}
inline Term operator-(double a, const Term& b) {
  return b.like(a) - b;
}
inline Term operator==(const Term& a, double b) {
  return a.compare("eq", a.like(b));
}
inline Term operator<(const Term& a, double b) {
  return a.compare("lt", a.like(b));
}
inline Term operator<=(const Term& a, double b) {
  return a.compare("le", a.like(b));
}
inline Term operator>(const Term& a, double b) {
  return a.compare("gt", a.like(b));
}
inline Term operator>=(const Term& a, double b) {
  return a.compare("ge", a.like(b));
}

// f32 as f64, and back.
inline Term wide(const Term& x) {
  return x.to(DType::F64);
}
inline Term narrow(const Term& x) {
  return x.to(DType::F32);
}
inline double wide(float x) {
  return x;
}
inline float narrow(double x) {
  return static_cast<float>(x);
}

// A number of the type of x.
inline Term constant_like(const Term& x, double number) {
  return x.like(number);
}
inline float constant_like(float, double number) {
  return static_cast<float>(number);
}

inline float choose(bool condition, float on_true, float on_false) {
  return condition ? on_true : on_false;
}

} // namespace firn::onnx
