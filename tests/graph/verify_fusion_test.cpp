// The verifier's rules for each kind of fusion, each broken once, and fusions of each kind that it accepts.
#include "compiler/graph/fusion.h"
#include "compiler/graph/verify.h"

#include "tests/graph/text_files.h"

namespace firn {
namespace {

// A fusion with this kind, operands and region, alone in @main.
struct FusionText {
  std::string kind;     // with further attributes, if any
  std::string operands; // "%a: f32[2], %b: f32[3]": parameters of @main and of the region alike
  std::string body, result, type;
};

std::string module_of(const FusionText& f) {
  std::string names, parameters;
  std::istringstream in(f.operands);
  for (std::string part; std::getline(in, part, ';');) {
    std::string name = part.substr(0, part.find(':'));
    names += (names.empty() ? "" : ", ") + name;
    parameters += (parameters.empty() ? "" : ", ") + part;
  }
  return main_text(parameters, f.type,
                   "%result = fusion " + names + " {kind = " + f.kind + "} region(" + parameters + ") { " +
                       f.body + " return " + f.result + " } : " + f.type + " return %result");
}

std::string error_of(const FusionText& f) {
  Result verified = verify(*parse_or_fail("m", module_of(f)));
  return verified ? "" : verified.error().message;
}

void accepts(const FusionText& f) {
  INFO(module_of(f));
  CHECK(error_of(f) == "");
}

void refuses(const FusionText& f, const std::string& wanted) {
  std::string message = error_of(f);
  INFO(module_of(f) << "\nfound: " << message << "\nwanted: " << wanted);
  CHECK(message.find(wanted) != std::string::npos);
  CHECK(message.find("%result = fusion") != std::string::npos);
}

const std::string kDot = " {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : ";
const std::string kMatrices = "%a: f32[4,4];%b: f32[4,4]";
const std::string kSum = "region(%l: f32[], %r: f32[]) { %t = add %l, %r : f32[] return %t } : ";
const std::string kZero = "%z = constant [0] : f32[] ";

TEST_CASE("fusions have a known kind") {
  FusionText f{"elementwise", "%a: f32[4]", "%n = negate %a : f32[4]", "%n", "f32[4]"};
  accepts(f);
  f.kind = "loop";
  refuses(f, "fusion of the unknown kind 'loop', wants one of attention, contraction, depthwise_chain, ");
  Result verified = verify(
      *parse_or_fail("m", main_text("%a: f32[4]", "f32[4]",
                                    "%y = fusion %a region(%p: f32[4]) { return %p } : f32[4] return %y")));
  REQUIRE_FALSE(verified);
  CHECK(verified.error().message.find("attribute 'kind' is missing") != std::string::npos);
}

TEST_CASE("the words of kinds are read back") {
  for (const char* word : {"attention", "contraction", "depthwise_chain", "elementwise", "fused_spatial_sum",
                           "line_buffer", "movement", "reduce", "window"}) {
    auto kind = parse_fusion_kind(word);
    REQUIRE(kind);
    CHECK(fusion_kind_word(*kind) == word);
  }
  CHECK_FALSE(parse_fusion_kind(""));
}

TEST_CASE("a contraction has one dot or convolution of its operands") {
  FusionText f{"contraction", kMatrices, "%d = dot %a, %b" + kDot + "f32[4,4] %n = negate %d : f32[4,4]",
               "%n", "f32[4,4]"};
  accepts(f);
  f.body += " %e = dot %a, %b" + kDot + "f32[4,4]";
  refuses(f, "fusion of kind contraction wants one dot, blocked dot or convolution of its operands");
  f.body = "%n = negate %a : f32[4,4]";
  refuses(f, "this one has none or several dots and convolutions");
  f.body = "%m = negate %a : f32[4,4] %n = dot %m, %b" + kDot + "f32[4,4]";
  refuses(f, "this one computes operand 0 of the dot");
  f.body = "%n = dot %a, %b" + kDot + "f32[4,4] %m = transpose %n {permutation = [1, 0]} : f32[4,4]";
  f.body += " %s = reshape %m : f32[16]";
  f.result = "%s", f.type = "f32[16]";
  refuses(f, "this one returns other dims than those of the dot");
  f.body = kZero + "%d = dot %a, %b" + kDot + "f32[4,4] %n = reduce %d, %z {dims = [0]} " + kSum + "f32[4]";
  f.result = "%n", f.type = "f32[4]";
  refuses(f, "this one has a reduce");
}

TEST_CASE("elementwise fusions have no root") {
  FusionText f{"elementwise", kMatrices, "%n = dot %a, %b" + kDot + "f32[4,4]", "%n", "f32[4,4]"};
  refuses(f, "fusion of kind elementwise wants code per element alone; this one has a dot");
  f.body = kZero + "%n = reduce %a, %z {dims = [0]} " + kSum + "f32[4]";
  f.type = "f32[4]";
  refuses(f, "this one has a reduce");
}

TEST_CASE("a reduce has one reduce") {
  FusionText f{"reduce", "%a: f32[4,3]",
               kZero + "%m = negate %a : f32[4,3] %s = reduce %m, %z {dims = [1]} " + kSum +
                   "f32[4] %n = negate %s : f32[4]",
               "%n", "f32[4]"};
  accepts(f);
  f.body += " %o = reduce %m, %z {dims = [1]} " + kSum + "f32[4]";
  refuses(f, "this one has none or several reduces");
  f.body = "%n = constant [1, 2, 3, 4] : f32[4]";
  refuses(f, "fusion of kind reduce wants one reduce");
}

TEST_CASE("a window has one reduce_window of an operand") {
  const std::string pool = "reduce_window %m, %z {window = 1x1x2x2} " + kSum + "f32[1,1,3,3]";
  FusionText f{"window", "%m: f32[1,1,4,4]", kZero + "%n = " + pool, "%n", "f32[1,1,3,3]"};
  accepts(f);
  f.operands = "%a: f32[1,1,4,4]";
  f.body = kZero + "%m = negate %a : f32[1,1,4,4] %n = " + pool;
  refuses(f, "fusion of kind window wants one reduce_window of an operand");
  refuses(f, "this one computes operand 0 of the reduce_window");
}

TEST_CASE("a movement is a transpose of slices and reshapes") {
  FusionText f{"movement", "%a: f32[4,6]",
               "%s = slice %a {starts = [0, 2], limits = [4, 6], strides = [1, 1]} : f32[4,4] "
               "%n = transpose %s {permutation = [1, 0]} : f32[4,4]",
               "%n", "f32[4,4]"};
  accepts(f);
  f.result = "%s";
  refuses(f, "this one returns no transpose");
  f.body += " %m = negate %n : f32[4,4]";
  f.result = "%m";
  refuses(f, "this one has a negate");
}

TEST_CASE("attention has two dots and a softmax between them") {
  const std::string softmax = "%w = composite %s {name = softmax, dim = 1} region(%v: f32[4,4]) { "
                              "%e = exponential %v : f32[4,4] return %e } : f32[4,4] ";
  const std::string scores = "%s = dot %a, %b" + kDot + "f32[4,4] ";
  FusionText f{"attention", kMatrices + ";%c: f32[4,4]",
               scores + softmax + "%n = dot %w, %c" + kDot + "f32[4,4]", "%n", "f32[4,4]"};
  accepts(f);
  f.body = scores + "%n = dot %s, %c" + kDot + "f32[4,4]";
  refuses(f, "this one has 2 dots and 0 softmaxes");
  f.body = "%s = negate %a : f32[4,4] " + softmax + "%n = dot %w, %c" + kDot + "f32[4,4]";
  refuses(f, "this one has 1 dots and 1 softmaxes");
  f.body = scores + softmax + "%d = dot %w, %c" + kDot + "f32[4,4] %n = negate %d : f32[4,4]";
  refuses(f, "this one returns something else");
}

const std::string kImage = "f32[1,8,6,6]";
const std::string kChainOperands = "%x: f32[1,8,6,6];%w: f32[8,8,1,1];%t: f32[8,1,3,3]";

std::string dense(const std::string& name, const std::string& from) {
  return name + " = convolution " + from + ", %w {window = 1x1, groups = 1} : " + kImage + " ";
}
std::string depthwise(const std::string& name, const std::string& from) {
  return name + " = convolution " + from + ", %t {window = 3x3 pad 1_1x1_1, groups = 8} : " + kImage + " ";
}

TEST_CASE("a depthwise chain is of convolutions one behind the other") {
  FusionText f{"depthwise_chain, rows = 2", kChainOperands, dense("%e", "%x") + depthwise("%n", "%e"), "%n",
               kImage};
  accepts(f);
  f.body = depthwise("%n", "%x");
  refuses(f, "this one has 1 members");
  f.body = dense("%e", "%x") + dense("%n", "%e");
  refuses(f, "this one has no depthwise convolution");
  f.body = dense("%e", "%x") + depthwise("%n", "%x");
  refuses(f, "this one has a convolution that does not read the one before");
  f.body = dense("%e", "%x") + "%m = negate %e : " + kImage + " " + depthwise("%n", "%m");
  refuses(f, "this one has a negate without convolution");
}

TEST_CASE("a line buffer makes the map that a convolution reads") {
  const std::string padded = "f32[1,8,8,8]",
                    pad = "%m = pad %x, %z {low = [0, 0, 1, 1], high = [0, 0, 1, 1], "
                          "interior = [0, 0, 0, 0]} : " +
                          padded + " ",
                    convolution = "%n = convolution %m, %t {window = 3x3, groups = 8} : " + kImage + " ";
  FusionText f{"line_buffer, rows = 2", kChainOperands, kZero + pad + convolution, "%n", kImage};
  accepts(f);
  f.body = kZero + dense("%e", "%x") + "%m = pad %e, %z {low = [0, 0, 1, 1], high = [0, 0, 1, 1], " +
           "interior = [0, 0, 0, 0]} : " + padded + " " + convolution;
  accepts(f);
  f.body = depthwise("%n", "%x");
  refuses(f, "this one has 1 members");
  f.body = kZero + pad + depthwise("%n", "%x");
  refuses(f, "this one has a convolution that does not read what is made");
  f.body = kZero + pad + convolution + "%o = negate %n : " + kImage + " ";
  f.result = "%o";
  refuses(f, "this one ends with a negate without convolution");
  f.body = kZero + pad + dense("%e", "%x") + convolution;
  f.result = "%n";
  refuses(f, "this one has a convolution");
  f.body = kZero + pad + convolution;
  f.result = "%m";
  f.type = padded;
  refuses(f, "this one returns something else");
}

TEST_CASE("a fused spatial sum is one of what a convolution gives") {
  auto sum = [](const std::string& dims, const std::string& type) {
    return kZero + "%n = reduce %y, %z {dims = " + dims + "} " + kSum + type;
  };
  FusionText f{"fused_spatial_sum", kChainOperands, dense("%y", "%x") + sum("[2, 3]", "f32[1,8]"), "%n",
               "f32[1,8]"};
  accepts(f);
  f.body = dense("%y", "%x") + sum("[1, 2]", "f32[1,6]");
  f.type = "f32[1,6]";
  refuses(f, "this one does not sum that over all positions");
  f.body = "%y = negate %x : " + kImage + " " + sum("[2, 3]", "f32[1,8]");
  f.type = "f32[1,8]";
  refuses(f, "this one begins with a negate without convolution");
}

} // namespace
} // namespace firn
