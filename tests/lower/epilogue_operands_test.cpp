// Operands of what follows a contraction or a pooling, in every shape that broadcasts to the result and by
// way of gathers, slices and reversals: no kernel reads outside of them, nor outside of its own operands,
// though the last vector of channels or positions is a part of one. All tables of CPUs that run here, small
// code, strict math.
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

std::string join(const std::vector<int64_t>& dims) {
  std::string text;
  for (int64_t dim : dims) text += (text.empty() ? "" : ",") + std::to_string(dim);
  return text;
}

std::string shape(const std::vector<int64_t>& dims) {
  return "[" + join(dims) + "]";
}

struct Path {
  std::string kind = "contraction"; // of the fusion
  std::string input, filter;        // types; `BLOCK` stands for the layout in blocks; no filter: a pooling
  std::string op;                   // "convolution %p, %q {...}"
  std::vector<int64_t> result;      // dims
  bool blocked = true;              // the result
  std::string constant_filter = ""; // instead of a parameter
  std::string algorithm = "";       // what the kernel says it is, if that is asked for
};

// Builds the module whose result is that of `op` plus operands.
class EpilogueText {
public:
  EpilogueText(const Path& path, const std::string& cpu)
      : path_(path), block_(std::to_string(target_of("", cpu).channel_block())) {}

  // Operands in all shapes that broadcast.
  std::string broadcasts() {
    int rank = static_cast<int>(path_.result.size());
    for (int mask = 0; mask < 1 << rank; ++mask) {
      std::vector<int64_t> dims = path_.result;
      for (int d = 0; d < rank; ++d)
        if (!(mask >> d & 1)) dims[static_cast<size_t>(d)] = 1;
      // Types in turn.
      static constexpr const char* dtypes[] = {"f32", "f16", "i8", "f32", "i32"};
      std::string dtype = dtypes[mask % 5], name = "%o" + std::to_string(mask), own = name + "i";
      add_operand(name, own, dtype + shape(dims));
      std::string value = own;
      if (dtype != "f32") {
        code_ += " " + own + "c = convert " + own + " {to = f32} : f32" + shape(dims);
        value = own + "c";
      }
      add_broadcast(value);
    }
    return module();
  }

  // Operands by way of indices, along each dim by itself and with the others beside it.
  std::string movements() {
    int rank = static_cast<int>(path_.result.size());
    for (int d = 0; d < rank; ++d)
      for (bool alone : {true, false}) {
        int64_t extent = path_.result[static_cast<size_t>(d)];
        auto dims_with = [&](int64_t own) {
          std::vector<int64_t> dims = alone ? std::vector<int64_t>(path_.result.size(), 1) : path_.result;
          dims[static_cast<size_t>(d)] = own;
          return dims;
        };
        std::string n = "%m" + std::to_string(2 * d + alone), axis = std::to_string(d);
        std::string here = "f32" + shape(dims_with(extent)), wider = "f32" + shape(dims_with(extent + 3));
        add_operand(n + "a", n + "ai", wider);
        add_operand(n + "b", n + "bi", "i64[" + std::to_string(extent) + "]");
        code_ += " " + n + "g = gather " + n + "ai, " + n + "bi {axis = " + axis + "} : " + here;
        add_broadcast(n + "g");
        add_operand(n + "c", n + "ci", wider);
        std::vector<int64_t> starts(path_.result.size(), 0), ones(path_.result.size(), 1),
            limits = dims_with(extent + 3);
        starts[static_cast<size_t>(d)] = 3;
        code_ += " " + n + "s = slice " + n + "ci {starts = " + shape(starts) +
                 ", limits = " + shape(limits) + ", strides = " + shape(ones) + "} : " + here;
        add_broadcast(n + "s");
        add_operand(n + "d", n + "di", here);
        code_ += " " + n + "r = reverse " + n + "di {dims = [" + axis + "]} : " + here;
        add_broadcast(n + "r");
        add_operand(n + "e", n + "ei", "bool" + shape(dims_with(extent)));
        code_ += " " + n + "z = convert " + n + "ei {to = f32} : " + here + " " + n + "w = select " + n +
                 "ei, " + n + "z, " + n + "r : " + here;
        add_broadcast(n + "w");
      }
    return module();
  }

private:
  std::string with_blocks(std::string type) const {
    std::string order;
    long rank = std::count(type.begin(), type.end(), ',') + 1;
    if (size_t at = type.find("BLOCK"); at != std::string::npos) {
      for (long d = 0; d < rank; ++d) order += (d ? "," : "") + std::to_string(d);
      type.replace(at, 5, "{" + order + ":1x" + block_ + "}");
    }
    return type;
  }
  std::string result_type() const {
    return with_blocks("f32" + shape(path_.result) + (path_.blocked ? "BLOCK" : ""));
  }

  void add_operand(const std::string& name, const std::string& own, const std::string& type) {
    parameters_ += ", " + name + ": " + type;
    operands_ += ", " + name;
    region_ += ", " + own + ": " + type;
  }

  void add_broadcast(const std::string& value) {
    std::string number = std::to_string(next_++), sum = "%s" + number, all;
    for (size_t d = 0; d < path_.result.size(); ++d) all += (d ? ", " : "") + std::to_string(d);
    code_ += " %u" + number + " = broadcast_in_dim " + value + " {dims = [" + all + "]} : " + result_type() +
             " " + sum + " = add " + sum_ + ", %u" + number + " : " + result_type();
    sum_ = sum;
  }

  std::string module() const {
    std::string plain_in = path_.input.substr(0, path_.input.find(']') + 1), in = with_blocks(path_.input);
    std::string plain_out = "f32" + shape(path_.result), out = result_type();
    bool constant = !path_.constant_filter.empty(), filter = !path_.filter.empty();
    return "module @m { func @main(%x: " + plain_in + (filter && !constant ? ", %w: " + path_.filter : "") +
           parameters_ + ") -> (" + plain_out + ") {" +
           (constant ? " %w = " + path_.constant_filter + " : " + path_.filter : "") +
           " %n = negate %x : " + plain_in + " %b = copy %n : " + in + " %f = fusion %b" +
           (filter ? ", %w" : "") + operands_ + " {kind = " + path_.kind + "} region (%p: " + in +
           (filter ? ", %q: " + path_.filter : "") + region_ + ") { " + path_.op + " : " + out + code_ +
           " return " + sum_ + " } : " + out + " %r = copy %f : " + plain_out + " return %r } }";
  }

  const Path& path_;
  std::string block_, parameters_, operands_, region_, code_, sum_ = "%c";
  int next_ = 0;
};

// Of the indices that `movements` gathers by.
std::map<std::string, Range> index_ranges(const Path& path) {
  std::map<std::string, Range> ranges;
  for (size_t d = 0; d < path.result.size(); ++d)
    for (int alone : {0, 1})
      ranges["m" + std::to_string(2 * static_cast<int>(d) + alone) + "b"] = {
          0, static_cast<double>(path.result[d] + 2)};
  return ranges;
}

void expect_inside(const Path& path, const std::vector<std::string>& cpus = runnable_cpus()) {
  for (const std::string& cpu : cpus) {
    std::string broadcasts = EpilogueText(path, cpu).broadcasts(),
                movements = EpilogueText(path, cpu).movements();
    if (!path.algorithm.empty()) {
      bool found = false;
      for (const auto& kernel : lower_text(broadcasts, cpu).kernels)
        found |= kernel->algorithm.find(path.algorithm) != std::string::npos;
      CHECK(found);
    }
    LoweredOptions options{.tolerance = 2e-5, .ranges = index_ranges(path), .cpus = {cpu}, .guarded = true};
    expect_lowered_module(broadcasts, options);
    expect_lowered_module(movements, options);
    if (cpu != "x86-64-v3") continue;
    options.optimize_size = true;
    expect_lowered_module(broadcasts, options);
    expect_lowered_module(movements, options);
    options.optimize_size = false;
    options.math = firn::lower::Math::Strict;
    expect_lowered_module(broadcasts, options);
  }
}

Path convolution(const std::string& in, const std::string& filter, const std::string& attributes,
                 std::vector<int64_t> result) {
  Path path;
  path.input = "f32[" + in + "]BLOCK";
  path.filter = "f32[" + filter + "]";
  path.op = "%c = convolution %p, %q {" + attributes + "}";
  path.result = std::move(result);
  return path;
}

} // namespace

TEST_CASE("depthwise convolutions read no operand outside, broken blocks of channels and all",
          "[lower][guard]") {
  Path path = convolution("2,13,6,9", "13,1,3,3", "window = 3x3 pad 1_1x1_1, groups = 13", {2, 13, 6, 9});
  path.algorithm = "depthwise";
  expect_inside(path);
}

TEST_CASE("transposed convolutions read no operand outside", "[lower][guard]") {
  Path path = convolution("1,9,4,5", "13,9,4,4", "window = 4x4 pad 2_2x2_2 input_dilate 2x2, groups = 1",
                          {1, 13, 8, 10});
  expect_inside(path, {"x86-64-v3", "native"});
}

TEST_CASE("dots read no operand outside", "[lower][guard]") {
  Path path;
  path.input = "f32[7,40]";
  path.filter = "f32[40,19]";
  path.op = "%c = dot %p, %q {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}";
  path.result = {7, 19};
  path.blocked = false;
  expect_inside(path, {"x86-64", "x86-64-v3", "native"});
  // Batches, and a product of which the lhs has the lanes.
  path.input = "f32[3,23,10]";
  path.filter = "f32[3,10,1]";
  path.op = "%c = dot %p, %q {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}";
  path.result = {3, 23, 1};
  expect_inside(path, {"x86-64-v3", "native"});
}
