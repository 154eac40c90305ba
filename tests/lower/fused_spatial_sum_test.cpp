// Sums over positions taken while a convolution's result is in registers, against the evaluator: depthwise
// convolutions, direct ones, strips; channel tails, strides, batches, results that nobody else reads.
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

#include <set>

using namespace firn::test;

namespace {

struct Case {
  int in, out; // channels; 0 in: depthwise
  std::string image = "9,13", after = "9,13";
  std::string taps = "1,1", window = "1x1";
  int batch = 1, groups = 1;
  bool keeps_result = true;
  std::string activation = "tanh";
  int expand_from = 0;          // channels that a 1x1 convolution expands before, in strips of three lines
  int64_t constant_weights = 0; // how many, if they are constant: then 3x3 is for Winograd's algorithm
  bool adds_operand = false;    // to the sums, of their own type
};

class SumText {
public:
  SumText(const Case& c, const std::string& cpu)
      : c_(c), block_(std::to_string(target_of("", cpu).cpu.channel_block())) {}

  std::string module() const {
    int first = c_.expand_from ? c_.expand_from : input_channels();
    std::string in = blocked(first, c_.image), out = blocked(c_.out, c_.after),
                plain_out = plain(c_.out, c_.after),
                accumulators = "f32[" + std::to_string(c_.batch) + "," + std::to_string(c_.out) + "]",
                bias = bias_type(),
                scale = c_.expand_from ? filter_of(input_channels(), first, "1,1") : "f32[]";
    std::string result = c_.keeps_result ? plain_out + ", " + accumulators : accumulators;
    return "module @m { func @main(%x: " + plain(first, c_.image) +
           (c_.constant_weights ? "" : ", %w: " + filter()) + ", %b: " + bias + ", %e: " + scale +
           (c_.adds_operand ? ", %added: " + accumulators : "") + ") -> (" + result +
           ") { %xb = copy %x : " + in +
           (c_.constant_weights ? " %w = " + random_constant(c_.constant_weights, 3) + " : " + filter()
                                : "") +
           (c_.keeps_result ? " %f:2" : " %f") + " = fusion %xb, %w, %b, %e" +
           (c_.adds_operand ? ", %added" : "") + " {kind = fused_spatial_sum} region (%p: " + in +
           ", %q: " + filter() + ", %v: " + bias + ", %g: " + scale +
           (c_.adds_operand ? ", %a: " + accumulators : "") + ") {" + producer(in, out, scale) +
           reduction(out, accumulators) +
           (c_.keeps_result ? " return %y, %s } : (" + out + ", " + accumulators +
                                  ") %r = copy %f#0 : " + plain_out + " return %r, %f#1 } }"
                            : " return %s } : " + accumulators + " return %f } }");
  }

private:
  // The numbers of an image's dims, which come behind batch and channels.
  std::string spatial_dims() const {
    std::string dims = "2";
    for (char c : c_.image)
      if (c == ',') dims += "," + std::to_string(dims.back() - '0' + 1);
    return dims;
  }
  int input_channels() const { return c_.in ? c_.in : c_.out; }
  std::string bias_type() const { return "f32[" + std::to_string(c_.out) + "]"; }
  static std::string filter_of(int filters, int channels, const std::string& taps) {
    return "f32[" + std::to_string(filters) + "," + std::to_string(channels) + "," + taps + "]";
  }
  std::string filter() const { return filter_of(c_.out, c_.in ? c_.in / c_.groups : 1, c_.taps); }
  std::string plain(int channels, const std::string& spatial) const {
    return "f32[" + std::to_string(c_.batch) + "," + std::to_string(channels) + "," + spatial + "]";
  }
  std::string blocked(int channels, const std::string& spatial) const {
    return plain(channels, spatial) + "{0,1," + spatial_dims() + ":1x" + block_ + "}";
  }

  std::string convolution(const std::string& name, const std::string& input, const std::string& in,
                          const std::string& out) const {
    return " %" + name + " = fusion " + input + ", %q, %v {kind = contraction} region (%p1: " + in +
           ", %q1: " + filter() + ", %v1: " + bias_type() +
           ") { %c = convolution %p1, %q1 {groups = " + std::to_string(c_.in ? c_.groups : c_.out) +
           ", window = " + c_.window + "} : " + out + " %u = broadcast_in_dim %v1 {dims = [1]} : " + out +
           " %t = add %c, %u : " + out + " %a = " + c_.activation + " %t : " + out + " return %a } : " + out;
  }

  std::string producer(const std::string& in, const std::string& out, const std::string& scale) const {
    if (!c_.expand_from) return convolution("y", "%p", in, out);
    std::string expanded = blocked(input_channels(), c_.image);
    return " %y = fusion %p, %q, %v, %g {kind = depthwise_chain, rows = 3} region (%p: " + in +
           ", %q: " + filter() + ", %v: " + bias_type() + ", %g: " + scale +
           ") { %h = convolution %p, %g {groups = 1, window = 1x1} : " + expanded +
           convolution("d", "%h", expanded, out) + " return %d } : " + out;
  }

  std::string reduction(const std::string& out, const std::string& accumulators) const {
    return " %s = fusion %y" + std::string(c_.adds_operand ? ", %a" : "") +
           " {kind = reduce} region (%y2: " + out + (c_.adds_operand ? ", %a2: " + accumulators : "") +
           ") { %z = constant [0] : f32[] %m0 = reduce %y2, %z {dims = [" + spatial_dims() +
           "]} region (%l: f32[], %o: f32[]) { %i = add %l, %o : f32[] return %i } : " + accumulators +
           (c_.adds_operand ? " %m = add %m0, %a2 : " : " %m = negate %m0 : ") + accumulators +
           " %n = constant [37] : f32[] %j = broadcast_in_dim %n {dims = []} : " + accumulators +
           " %k = divide %m, %j : " + accumulators + " return %k } : " + accumulators;
  }

  const Case& c_;
  std::string block_;
};

// `taken`: whether the convolution's kernel takes the sums, rather than another from memory.
void expect_sums(const Case& c, bool taken = true) {
  for (const char* cpu : {"x86-64", "x86-64-v3", "native"}) {
    std::string text = SumText(c, cpu).module();
    firn::kernel::Program program = lower_text(text, cpu);
    bool found = false;
    for (const auto& kernel : program.kernels) found |= kernel->algorithm == "totals";
    INFO(cpu << "\n" << text);
    CHECK(found == taken);
    expect_lowered_module(text, {.tolerance = 1e-5, .ranges = {{"x", {-0.5, 0.5}}}, .cpus = {cpu}});
  }
}

} // namespace

TEST_CASE("fused spatial sums of depthwise convolutions", "[lower]") {
  for (bool keeps : {true, false}) {
    expect_sums({0, 32, "9,13", "9,13", "3,3", "3x3 pad 1_1x1_1", 1, 1, keeps});
    expect_sums({0, 37, "15,20", "8,10", "5,5", "5x5 pad 2_2x2_2 stride 2x2", 2, 1, keeps, "logistic"});
    expect_sums({0, 5, "25,4", "25,4", "3,3", "3x3 pad 1_1x1_1", 3, 1, keeps, "negate"});
  }
}

TEST_CASE("fused spatial sums of direct convolutions", "[lower]") {
  for (bool keeps : {true, false}) {
    expect_sums({8, 40, "9,14", "9,14", "1,1", "1x1", 1, 1, keeps});
    expect_sums({24, 37, "7,30", "7,30", "1,1", "1x1", 3, 1, keeps, "logistic"});
    expect_sums({5, 100, "14,15", "7,8", "3,3", "3x3 pad 1_1x1_1 stride 2x2", 2, 1, keeps});
    expect_sums({64, 96, "8,12", "8,12", "3,3", "3x3 pad 1_1x1_1", 1, 2, keeps, "negate"});
  }
}

TEST_CASE("fused spatial sums of lines and volumes", "[lower]") {
  for (bool keeps : {true, false}) {
    expect_sums({0, 37, "90", "90", "5", "5 pad 2_2", 2, 1, keeps});
    expect_sums({24, 40, "61", "31", "3", "3 pad 1_1 stride 2", 1, 1, keeps, "logistic"});
    expect_sums({16, 40, "4,5,9", "4,5,9", "1,1,1", "1x1x1", 2, 1, keeps, "negate"});
  }
}

TEST_CASE("totals of fused spatial sums go on with an operand of their own type", "[lower]") {
  for (bool keeps : {true, false}) {
    Case c{8, 40, "9,14", "9,14", "1,1", "1x1", 2, 1, keeps};
    c.adds_operand = true;
    expect_sums(c);
    // A result that nobody reads gets no memory.
    firn::kernel::Program program = lower_text(SumText(c, "x86-64-v3").module(), "x86-64-v3");
    std::set<int> used;
    for (const auto& step : program.steps)
      for (const auto& argument : step.arguments) used.insert(argument.buffer);
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      INFO(program.buffers[i].name);
      CHECK((program.buffers[i].space != firn::kernel::Space::Arena || used.count(static_cast<int>(i)) > 0));
    }
  }
}

TEST_CASE("fused spatial sums of convolutions by Winograd's algorithm", "[lower]") {
  for (bool keeps : {true, false})
    for (const char* activation : {"negate", "logistic"}) {
      Case c{32, 40, "14,17", "14,17", "3,3", "3x3 pad 1_1x1_1", 2, 1, keeps, activation};
      c.constant_weights = 40 * 32 * 9;
      firn::kernel::Program program = lower_text(SumText(c, "x86-64-v3").module(), "x86-64-v3");
      bool found = false;
      for (const auto& kernel : program.kernels)
        found |= kernel->algorithm.find("winograd") != std::string::npos;
      CHECK(found);
      expect_sums(c);
      c.image = c.after = "16,16";
      expect_sums(c);
    }
}

TEST_CASE("fused spatial sums of strips", "[lower]") {
  for (bool keeps : {true, false}) {
    expect_sums({0, 40, "10,16", "10,16", "3,3", "3x3 pad 1_1x1_1", 1, 1, keeps, "tanh", 8});
    expect_sums({0, 37, "13,19", "7,10", "5,5", "5x5 pad 2_2x2_2 stride 2x2", 2, 1, keeps, "logistic", 12});
  }
}

TEST_CASE("sums of tiles that are hardly fewer than the map are left to a kernel of their own", "[lower]") {
  expect_sums({8, 40, "1,1", "1,1"}, /*taken=*/false);
  expect_sums({0, 32, "1,1", "1,1", "3,3", "3x3 pad 1_1x1_1"}, /*taken=*/false);
}

TEST_CASE("sums of transposed convolutions are left to a kernel of their own", "[lower]") {
  for (bool keeps : {true, false}) {
    Case c{32, 32, "14,14", "28,28", "6,6", "6x6 pad 3_3x3_3 input_dilate 2x2", 2, 1, keeps, "logistic"};
    expect_sums(c, /*taken=*/false);
    c.constant_weights = 32 * 32 * 36; // phases of 3x3 taps, for Winograd's algorithm
    expect_sums(c, /*taken=*/false);
  }
}

TEST_CASE("fused spatial sums of large maps are as near as the map itself", "[lower]") {
  Case c{0, 16, "160,160", "160,160", "3,3", "3x3 pad 1_1x1_1", 1, 1, true, "exponential"};
  std::string text = SumText(c, "x86-64-v3").module();
  expect_lowered_module(text, {.tolerance = 1e-6, .ranges = {{"x", {0.1, 0.2}}}, .cpus = {"x86-64-v3"}});
}
