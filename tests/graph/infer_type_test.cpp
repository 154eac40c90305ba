// Which operands and attributes ops refuse, and result types that need more than copying. The plain cases are
// in text/.
#include "compiler/graph/infer_type.h"

#include "tests/graph/text_files.h"

namespace firn {
namespace {

// The inferred types of the last instruction of a body, or the error.
std::string infer(const std::string& parameters, const std::string& body, const std::string& symbols = "") {
  auto module = parse_or_fail("m", main_text(parameters, "", body + "\nreturn", symbols));
  const Instruction& last = *module->main().body().instructions().back();
  std::vector<const Region*> regions;
  for (int i = 0; i < last.num_regions(); ++i) regions.push_back(&last.region(i));
  auto types = infer_types(last.opcode(), last.operands(), last.attributes(), regions);
  if (!types) {
    CHECK(types.error().fault == Fault::Model);
    return types.error().message;
  }
  std::string text;
  for (const Type& type : *types) text += (text.empty() ? "" : " ") + type.to_string();
  return text;
}

struct Case {
  std::string parameters, body, wanted;
};

void check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    INFO(c.parameters << "\n" << c.body);
    std::string found = infer(c.parameters, c.body);
    INFO(found);
    CHECK(found.find(c.wanted) != std::string::npos);
  }
}

TEST_CASE("elementwise ops want one shape and dtype that they have a meaning for") {
  check({
      {"%x: f32[2], %y: f32[3]", "%r = add %x, %y : f32[2]",
       "add: operands have shapes f32[2] and f32[3], wants equal ones"},
      {"%x: f32[2], %y: f16[2]", "%r = add %x, %y : f32[2]",
       "operands are f32[2] and f16[2], wants one dtype"},
      {"%x: f32[2], %y: f32[2]{;2}", "%r = add %x, %y : f32[2]", "operands have different layouts"},
      {"%x: f32[2]", "%r = add %x : f32[2]", "add: has 1 operands, wants 2"},
      {"%x: f32[2]", "%r = and %x, %x : f32[2]", "of a dtype it does not take"},
      {"%x: bool[2]", "%r = popcnt %x : bool[2]", "of a dtype it does not take"},
      {"%x: string[2]", "%r = add %x, %x : string[2]", "of a dtype it does not take"},
      {"%c: f32[2], %x: f32[2]", "%r = select %c, %x, %x : f32[2]", "condition is f32[2], wants bool"},
      {"%x: f32[2]", "%r = compare %x, %x : bool[2]", "attribute 'direction' is missing"},
      {"%x: f32[2]", "%r = convert %x {to = 3} : f32[2]", "attribute 'to' is missing or of another kind"},
      {"%x: sequence<f32[2]; 3>", "%r = negate %x : f32[2]",
       "operand is sequence<f32[2]; 3>, wants a tensor"},
      {"%x: string[2]", "%r = compare %x, %x {direction = eq} : bool[2]", "bool[2]"},
  });
}

TEST_CASE("narrow wants f32, and bounds that its integers hold") {
  check({
      {"%x: f32[2]", "%r = narrow %x {high = 255, low = 0, to = u8} : u8[2]", "u8[2]"},
      {"%x: f32[2,3]", "%r = narrow %x {high = 9, low = -9, to = i32, zero = -7} : i32[2,3]", "i32[2,3]"},
      {"%x: f64[2]", "%r = narrow %x {high = 255, low = 0, to = u8} : u8[2]", "x is f64[2], wants f32"},
      {"%x: f32[2]", "%r = narrow %x {high = 255, low = 0, to = i8} : i8[2]",
       "is clamped to 0 to 255, wants bounds of i8"},
      {"%x: f32[2]", "%r = narrow %x {high = 3, low = 4, to = i8} : i8[2]", "is clamped to 4 to 3"},
      {"%x: f32[2]", "%r = narrow %x {high = 7, low = -8, to = i4} : i4[2]",
       "gives i4, wants integers of 8 to 32 bits"},
      {"%x: f32[2]", "%r = narrow %x {high = 7, low = -8, to = i16, zero = 8388609} : i16[2]",
       "zero is 8388609"},
  });
}

TEST_CASE("quantisation wants a scale and a zero point that fit") {
  const std::string x = "%x: f32[4,6], %s: f32[], %v: f32[6], %b: f32[4,2], %z: u8[]",
                    q = "%q: u8[4,6], " + x;
  check({
      {x, "%r = quantize %x {to = u8} : u8[4,6]",
       "has 1 operands, wants x, a scale and perhaps a zero point"},
      {x, "%r = quantize %x, %s : u8[4,6]", "attribute 'to' is missing"},
      {x, "%r = quantize %x, %s {to = i32} : i32[4,6]", "gives i32, wants integers or floats of at most 16"},
      {x, "%r = quantize %x, %s {to = bool} : bool[4,6]", "gives bool"},
      {x, "%r = quantize %x, %s, %z {to = i8} : i8[4,6]", "zero point is u8[], wants i8"},
      {x, "%r = quantize %x, %v {to = u8} : u8[4,6]", "scale is f32[6], which does not fit f32[4,6]"},
      {x, "%r = quantize %x, %v {to = u8, axis = 2} : u8[4,6]", "does not fit"},
      {x, "%r = quantize %x, %v {to = u8, axis = -1} : u8[4,6]", "does not fit"},
      {x, "%r = quantize %x, %v {to = u8, axis = 1} : u8[4,6]", "u8[4,6]"},
      {x, "%r = quantize %x, %b {to = u8, axis = 1} : u8[4,6]", "does not fit"},
      {x, "%r = quantize %x, %b {to = u8, axis = 1, block = 2} : u8[4,6]", "does not fit"},
      {x, "%r = quantize %x, %b {to = u8, axis = 1, block = -1} : u8[4,6]", "block is -1"},
      {x, "%r = quantize %x, %b {to = u8, block = 3} : u8[4,6]", "axis is missing or out of range"},
      {x, "%r = quantize %x, %b {to = u8, axis = 1, block = 4} : u8[4,6]", "u8[4,6]"},
      {"%x: f16[4], %s: f32[]", "%r = quantize %x, %s {to = u8} : u8[4]", "wants floats of one dtype"},
      {"%x: i32[4], %s: i32[]", "%r = quantize %x, %s {to = u8} : u8[4]", "wants floats of one dtype"},
      {q, "%r = dequantize %q, %s, %z : f32[4,6]", "f32[4,6]"},
      {q, "%r = dequantize %q, %z : f32[4,6]", "scale is u8[], wants f32 or f64"},
      {"%q: bool[4], %s: f32[]", "%r = dequantize %q, %s : f32[4]", "x is bool[4], wants numbers"},
  });
}

TEST_CASE("movement ops refuse what does not fit") {
  const std::string x = "%x: f32[2,3,4]";
  check({
      {x, "%r = transpose %x {permutation = [0, 1]} : f32[]", "permutation does not fit"},
      {x, "%r = transpose %x {permutation = [0, 1, 1]} : f32[]", "permutation does not fit"},
      {x, "%r = reverse %x {dims = [3]} : f32[]", "dims do not fit"},
      {x, "%r = concatenate {dim = 0} : f32[]", "wants at least one operand"},
      {x, "%r = concatenate %x {dim = 3} : f32[]", "out of range"},
      {"%x: f32[2,3], %y: f32[3,3]", "%r = concatenate %x, %y {dim = 1} : f32[]", "wants equal dims but 1"},
      {x, "%r = slice %x {starts = [0, 0, 0], limits = [2, 3, 5], strides = [1, 1, 1]} : f32[]",
       "range [0, 5) by 1 does not fit dim 2"},
      {x, "%r = slice %x {starts = [0, 2, 0], limits = [2, 1, 4], strides = [1, 1, 1]} : f32[]",
       "does not fit dim 1"},
      {x, "%r = slice %x {starts = [0, 0, 0], limits = [2, 3, 4], strides = [1, 0, 1]} : f32[]",
       "does not fit dim 1"},
      {x, "%r = slice %x {starts = [0, 0], limits = [2, 3], strides = [1, 1]} : f32[]", "one value per dim"},
      {x,
       "%r = slice %x {starts = [0, 0, 1], limits = [-1, 3, 4], strides = [1, 9223372036854775807, 2]} : "
       "f32[]",
       "f32[2,1,2]"},
      {x + ", %z: f16[]", "%r = pad %x, %z {low = [0, 0, 0], high = [0, 0, 0], interior = [0, 0, 0]} : f32[]",
       "padding value is f16[]"},
      {x + ", %z: f32[]",
       "%r = pad %x, %z {low = [-2, -2, 0], high = [0, -2, 0], interior = [0, 0, 0]} : f32[]",
       "crops more than dim 1 has"},
      {x + ", %z: f32[]",
       "%r = pad %x, %z {low = [0, 9223372036854775807, 0], high = [0, 0, 0], interior = [0, 0, 0]} : f32[]",
       "padding is too large"},
      {x + ", %z: f32[]",
       "%r = pad %x, %z {low = [0, 0, 0], high = [0, 0, 0], interior = [0, 0, 1099511627776]} : f32[]",
       "padding is too large"},
      {x + ", %z: f32[]",
       "%r = pad %x, %z {low = [1099511627776, 0, 0], high = [0, 1099511627775, 0], interior = [0, 0, 0]} : "
       "f32[]",
       "is too large"},
      {x + ", %i: i32[]", "%r = dynamic_slice %x, %i, %i, %i {sizes = [1, 1, 1]} : f32[]",
       "start is i32[], wants an i64 scalar"},
      {x + ", %i: i64[]", "%r = dynamic_slice %x, %i, %i, %i {sizes = [1, 4, 1]} : f32[]",
       "size 4 does not fit dim 1"},
      {x + ", %i: i64[]", "%r = dynamic_slice %x, %i, %i {sizes = [1, 1, 1]} : f32[]",
       "one start and one size per dim"},
      {x + ", %u: f32[2,4,4], %i: i64[]", "%r = dynamic_update_slice %x, %u, %i, %i, %i : f32[]",
       "is larger than the operand"},
      {x + ", %i: f32[2]", "%r = gather %x, %i {axis = 0} : f32[]", "indices are f32[2], wants integers"},
      {x + ", %i: i32[2]", "%r = gather %x, %i {axis = -1} : f32[]", "axis is missing or out of range"},
      {x + ", %i: i32[2,4,4]", "%r = gather_elements %x, %i {axis = 2} : f32[]", "do not fit"},
      {x + ", %i: i32[2,3,9]", "%r = gather_elements %x, %i {axis = 2} : f32[]", "f32[2,3,9]"},
      {x + ", %i: i32[2,4]", "%r = gather_nd %x, %i : f32[]", "do not fit"},
      {x + ", %i: i32[3,1]", "%r = gather_nd %x, %i {batch_dims = 1} : f32[]",
       "batch dims of f32[2,3,4] and i32[3,1] differ"},
      {x + ", %i: i32[2,5,1]", "%r = gather_nd %x, %i {batch_dims = 1} : f32[]", "f32[2,5,4]"},
      {x + ", %i: i32[7,2], %u: f32[7,3]", "%r = scatter_nd %x, %i, %u : f32[]", "wants f32[7,4]"},
      {x + ", %i: i32[1,3,4], %u: f16[1,3,4]", "%r = scatter_elements %x, %i, %u {axis = 0} : f32[]",
       "updates are f16[1,3,4]"},
  });
}

TEST_CASE("reductions and sorts refuse what does not fit") {
  const std::string x = "%x: f32[2,8], %z: f32[]";
  const std::string add = " region(%a: f32[], %b: f32[]) { %s = add %a, %b : f32[] return %s } : f32[]";
  check({
      {x, "%r = reduce %x, %z {dims = [2]}" + add, "dims do not fit"},
      {x, "%r = reduce %x {dims = [0]}" + add, "as many scalar initial values"},
      {"%x: f32[2], %z: f16[]", "%r = reduce %x, %z {dims = [0]}" + add, "as many scalar initial values"},
      {x, "%r = reduce_window %x, %z {window = 3}" + add, "window does not fit"},
      {x, "%r = reduce_window %x, %z {window = 1x0}" + add, "is broken"},
      {x, "%r = reduce_window %x, %z {window = 1x3 stride 1x0}" + add, "is broken"},
      {x, "%r = reduce_window %x, %z {window = 1x9999999999 dilate 1x9999999999}" + add, "is broken"},
      {x, "%r = reduce_window %x, %z {window = 1x9}" + add, "f32[2,0]"},
      {x, "%r = arg_reduce %x {dim = 2, kind = max} : i64[]", "out of range"},
      {x, "%r = top_k %x {dim = 1, k = 9} : f32[]", "k is 9, the dim has 8"},
      {x + ", %y: i64[2,7]", "%r = sort %x, %y {dim = 1} : f32[]", "wants equal shapes"},
      {x, "%r = cumulative %x {dim = 5, reducer = add} : f32[]", "out of range"},
      {x + ", %s: f32[2,4]", "%r = select_and_scatter %x, %s, %z {window = 1x2} : f32[]",
       "not of one element per window"},
  });
}

TEST_CASE("contractions refuse what does not fit") {
  const std::string image = "%x: f32[1,8,9,9], ";
  const std::string lists = "lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]";
  check({
      {"%a: f32[2,3], %b: f32[4,5]", "%r = dot %a, %b {" + lists + "} : f32[]",
       "lhs is f32[2,3], rhs is f32[4,5]: paired dims differ"},
      {"%a: f32[2,3], %b: f16[3,5]", "%r = dot %a, %b {" + lists + "} : f32[]", "wants one dtype"},
      {"%a: f32[3], %b: f32[3,5]", "%r = dot %a, %b {" + lists + "} : f32[]", "dimension lists do not fit"},
      {"%a: f32[2,3], %b: f32[3,5]", "%r = dot %a, %b {lhs_batch = []} : f32[]",
       "dimension lists are missing"},
      {"%a: f32[2,3], %b: f32[3,5]",
       "%r = dot %a, %b {lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = []} : f32[]",
       "differ in length"},
      {image + "%f: f32[16,4,3]", "%r = convolution %x, %f {window = 3x3} : f32[]",
       "wants equal ranks of 3 or more"},
      {image + "%f: f32[16,4,3,3]", "%r = convolution %x, %f {window = 3x3} : f32[]",
       "input has 8 channels, filter is f32[16,4,3,3] with 1 groups"},
      {image + "%f: f32[15,4,3,3]", "%r = convolution %x, %f {groups = 2, window = 3x3} : f32[]", "15"},
      {image + "%f: f32[16,8,3,3]", "%r = convolution %x, %f {window = 3x5} : f32[]",
       "differs from the filter"},
      {image + "%f: f32[16,8,3,3]", "%r = convolution %x, %f {window = 3x3x3} : f32[]",
       "window does not fit the rank"},
      {image + "%f: f16[16,8,3,3]", "%r = convolution %x, %f {window = 3x3} : f32[]", "want one dtype"},
      {image + "%f: f32[16,8,3,3]",
       "%r = convolution %x, %f {groups = 4611686018427387904, window = 3x3} : f32[]", "groups"},
  });
}

TEST_CASE("if wants a bool scalar") {
  check({{"%c: i64[], %x: f32[2]", "%r = if %c region() { return %x }, region() { return %x } : f32[2]",
          "condition is i64[], wants a bool scalar"}});
}

TEST_CASE("results beyond what can be addressed are refused") {
  check({{"%x: f32[1048576,1048576], %i: i32[1048576]", "%r = gather %x, %i {axis = 0} : f32[]",
          "f32[1048576,1048576]"},
         {"%x: f32[1048576,1048576], %i: i32[1048576,1048576]", "%r = gather %x, %i {axis = 0} : f32[]",
          "is too large"}});
  std::string symbols = "symbol n in [1, 8]", body;
  std::string last = "x";
  for (int i = 0; i < 70; ++i) {
    std::string next = "c" + std::to_string(i);
    // Stated types are not inferred ones, so the sizes double for as long as inference lets them.
    body += "%" + next + " = concatenate %" + last + ", %" + last + " {dim = 0} : f32[" +
            (i < 30 ? std::to_string(int64_t(1) << (i + 1)) : "1073741824") + "*n]\n";
    last = next;
  }
  auto found = infer("%x: f32[n]", body, symbols);
  CHECK(found == "f32[2147483648*n]");
}

TEST_CASE("symbolic dims are computed as expressions") {
  std::string symbols = "symbol n in [1, 8] symbol h in [8, 64]";
  CHECK(infer("%x: f32[n,3,h,h], %f: f32[8,3,3,3]",
              "%r = convolution %x, %f {window = 3x3 pad 1_1x1_1 stride 2x2} : f32[]",
              symbols) == "f32[n,8,(h + 1) floordiv 2,(h + 1) floordiv 2]");
  // The filter does not fit every n.
  CHECK(infer("%x: f32[1,3,n,h], %f: f32[8,3,3,3]", "%r = convolution %x, %f {window = 3x3} : f32[]",
              symbols) == "f32[1,8,max(0, n - 2),h - 2]");
  CHECK(infer("%x: f32[n,h], %z: f32[]",
              "%r = pad %x, %z {low = [0, 1], high = [0, 2], interior = [0, 0]} : f32[]",
              symbols) == "f32[n,h + 3]");
  CHECK(infer("%x: f32[n,h], %y: f32[n,4]", "%r = concatenate %x, %y {dim = 1} : f32[]", symbols) ==
        "f32[n,h + 4]");
  CHECK(infer("%x: f32[n,h]", "%r = slice %x {starts = [0, 0], limits = [1, -1], strides = [1, 1]} : f32[]",
              symbols) == "slice: slices the symbolic dim 0");
}

} // namespace
} // namespace firn
