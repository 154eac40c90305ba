// Text of attention.
#include "tests/lower/attention_text.h"

namespace firn::test {

std::string dims(std::initializer_list<int> extents) {
  std::string text;
  for (int extent : extents) text += (text.empty() ? "[" : ",") + std::to_string(extent);
  return text + "]";
}

std::string softmax(const std::string& x, const std::string& result, std::initializer_list<int> extents) {
  std::string type = "f32" + dims(extents), axis = std::to_string(extents.size() - 1), outer = "[0, 1]",
              reduced = "f32[";
  int count = 0;
  for (int extent : extents)
    if (++count < static_cast<int>(extents.size()))
      reduced += (count > 1 ? "," : "") + std::to_string(extent);
  reduced += "]";
  std::string kept;
  for (size_t i = 0; i + 1 < extents.size(); ++i) kept += (i ? ", " : "") + std::to_string(i);
  return result + " = composite " + x + " {name = softmax, dim = " + axis + "} region (%p: " + type +
         ") { "
         "%l = constant [-inf] : f32[] %mx = reduce %p, %l {dims = [" +
         axis +
         "]} region (%a: f32[], %b: f32[]) { %s = "
         "maximum %a, %b : f32[] return %s } : " +
         reduced + " %w = broadcast_in_dim %mx {dims = [" + kept + "]} : " + type +
         " %d = subtract %p, %w : " + type + " %e = exponential %d : " + type +
         " %z = constant [0.0] : f32[] "
         "%t = reduce %e, %z {dims = [" +
         axis + "]} region (%a: f32[], %b: f32[]) { %s = add %a, %b : f32[] return %s } : " + reduced +
         " %u = broadcast_in_dim %t {dims = [" + kept + "]} : " + type + " %y = divide %e, %u : " + type +
         " return %y } : " + type + "\n";
}

Text attention_text(const Sizes& z, const Others& others, const std::string& mask_code,
                    const std::string& values_code, const std::string& attributes) {
  std::string q = "f32" + dims({z.batch, z.rows, z.heads, z.depth}),
              k = "f32" + dims({z.batch, z.keys, z.heads, z.depth});
  std::string v = "f32" + dims({z.batch, z.keys, z.heads, z.value_depth});
  std::string scores = "f32" + dims({z.batch, z.heads, z.rows, z.keys});
  std::string y = "f32" + dims({z.batch, z.heads, z.rows, z.value_depth}),
              r = "f32" + dims({z.batch, z.rows, z.heads, z.value_depth});
  return {"%q: " + q + ", %k: " + k + ", %v: " + v + others.outer,
          values_code + "%r = fusion %q, %k, " + (values_code.empty() ? "%v" : "%values") + others.names +
              " {kind = attention" + attributes + "} region (%q1: " + q + ", %k1: " + k + ", %v1: " + v +
              others.inner +
              ") {\n%s = dot %q1, %k1 {lhs_batch = [0, 2], rhs_batch = [0, 2], lhs_contract = [3], "
              "rhs_contract = [3]} : " +
              scores + "\n" + mask_code + softmax("%m", "%w", {z.batch, z.heads, z.rows, z.keys}) +
              "%y = dot %w, %v1 {lhs_batch = [0, 1], rhs_batch = [0, 2], lhs_contract = [3], "
              "rhs_contract = [1]} : " +
              y + "\n%o = transpose %y {permutation = [0, 2, 1, 3]} : " + r + "\nreturn %o } : " + r,
          r};
}

} // namespace firn::test
