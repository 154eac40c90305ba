// Shapes that vary: one program for a range of extents, run at several values of them between guard pages
// where the actual extents end.
#include "tests/codegen/model_object.h"
#include "tests/lower/extents_text.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <sstream>

namespace firn::test {
TEST_CASE("element loops follow a leading dim", "[extents]") {
  for (int bound : {1, 9, 40})
    expect_everywhere(
        module_of({"n in [0, " + std::to_string(bound) + "]"}, "%x: f32[n,33], %b: f32[33]",
                  "    %r = fusion %x, %b {kind = elementwise} region (%p: f32[n,33], %q: f32[33]) {\n"
                  "      %w = broadcast_in_dim %q {dims = [1]} : f32[n,33]\n"
                  "      %s = add %p, %w : f32[n,33]\n"
                  "      %z = constant [0] : f32[]\n"
                  "      %zs = broadcast_in_dim %z {dims = []} : f32[n,33]\n"
                  "      %t = maximum %s, %zs : f32[n,33]\n"
                  "      return %t\n"
                  "    } : f32[n,33]",
                  "f32[n,33]"),
        {.extents = values_of("n", {0, 1, bound, bound / 2, bound / 3})});
}

TEST_CASE("element loops follow every dim", "[extents]") {
  std::vector<std::map<std::string, int64_t>> values;
  for (int64_t n : {0, 1, 2, 5})
    for (int64_t m : {0, 1, 3, 7, 8, 15, 16, 17, 31, 40}) values.push_back({{"n", n}, {"m", m}});
  for (const char* low : {"0", "1"}) {
    std::vector<std::map<std::string, int64_t>> taken;
    for (const auto& value : values)
      if (*low == '0' || (value.at("n") > 0 && value.at("m") > 0)) taken.push_back(value);
    std::vector<std::string> symbols = {std::string("n in [") + low + ", 5]",
                                        std::string("m in [") + low + ", 40]"};
    expect_everywhere(
        module_of(symbols, "%x: f32[n,m], %y: f32[n,m]", "    %r = add %x, %y : f32[n,m]", "f32[n,m]"),
        {.extents = taken});
    expect_everywhere(module_of(symbols, "%x: f32[n,3,m]", "    %r = tanh %x : f32[n,3,m]", "f32[n,3,m]"),
                      {.extents = taken});
    expect_everywhere(module_of(symbols, "%x: f32[m,n]",
                                "    %r = transpose %x {permutation = [1, 0]} : f32[n,m]", "f32[n,m]"),
                      {.extents = taken});
    expect_everywhere(module_of(symbols, "%x: f32[n,1], %y: f32[m]",
                                "    %a = broadcast_in_dim %x {dims = [0, 1]} : f32[n,m]\n"
                                "    %b = broadcast_in_dim %y {dims = [1]} : f32[n,m]\n"
                                "    %r = multiply %a, %b : f32[n,m]",
                                "f32[n,m]"),
                      {.extents = taken});
    expect_everywhere(module_of(symbols, "%x: f32[n,m]",
                                "    %z = constant [3] : f32[]\n"
                                "    %r = pad %x, %z {low = [1, 2], high = [0, 3], interior = [0, 0]} : "
                                "f32[n+1,m+5]",
                                "f32[n+1,m+5]"),
                      {.extents = taken});
    expect_everywhere(module_of(symbols, "%x: f32[2,n,m], %y: f32[2,n,7]",
                                "    %r = concatenate %x, %y {dim = 2} : f32[2,n,m+7]", "f32[2,n,m+7]"),
                      {.extents = taken});
    expect_everywhere(module_of(symbols, "%x: f32[n,m,6]", "    %r = reverse %x {dims = [0, 1]} : f32[n,m,6]",
                                "f32[n,m,6]"),
                      {.extents = taken});
    expect_everywhere(module_of(symbols, "%x: f32[n,m,4,2]",
                                "    %s = reshape %x : f32[n*m,8]\n"
                                "    %r = negate %s : f32[n*m,8]",
                                "f32[n*m,8]"),
                      {.extents = taken});
  }
}

TEST_CASE("long element loops are cut into items at any extent", "[extents]") {
  LoweredOptions options{.extents = {}};
  for (int64_t n : {0, 1, 7, 100, 1000, 1800})
    for (int64_t m : {1, 5, 31, 32}) options.extents.push_back({{"n", n}, {"m", m}});
  std::vector<std::string> symbols = {"n in [0, 1800]", "m in [1, 32]"};
  expect_everywhere(module_of(symbols, "%x: f32[n,m]", "    %r = negate %x : f32[n,m]", "f32[n,m]"), options);
  expect_everywhere(module_of(symbols, "%x: f32[n,m], %y: f32[m]",
                              "    %b = broadcast_in_dim %y {dims = [1]} : f32[n,m]\n"
                              "    %r = multiply %x, %b : f32[n,m]",
                              "f32[n,m]"),
                    options);
  expect_everywhere(module_of(symbols, "%x: f32[m,n,3]", "    %r = negate %x : f32[m,n,3]", "f32[m,n,3]"),
                    options);
  expect_everywhere(module_of(symbols, "%x: f32[m,n]",
                              "    %r = transpose %x {permutation = [1, 0]} : f32[n,m]", "f32[n,m]"),
                    options);
  // A step of a block is an item of several; the blocks themselves are few.
  std::string blocked = "f32[3,16,n]{0,1,2:1x8}";
  expect_everywhere(
      module_of(symbols, "%x: f32[3,16,n], %y: f32[16], %z: f32[m]",
                "    %b = copy %x : " + blocked +
                    "\n    %r0 = fusion %y, %b {kind = elementwise} region (%p: f32[16], %q: " + blocked +
                    ") {\n      %w = broadcast_in_dim %p {dims = [1]} : " + blocked +
                    "\n      %s = multiply %q, %w : " + blocked + "\n      return %s\n    } : " + blocked +
                    "\n    %r = copy %r0 : f32[3,16,n]",
                "f32[3,16,n]"),
      options);
}

TEST_CASE("elements of every kind follow extents", "[extents]") {
  for (const char* dtype : {"f64", "f16", "bf16", "i64", "i32", "i8", "u8"}) {
    std::string type = std::string(dtype) + "[n,m]";
    expect_everywhere(module_of({"n in [0, 3]", "m in [0, 70]"}, "%x: " + type + ", %y: " + type,
                                "    %r = add %x, %y : " + type, type),
                      {.extents = {{{"n", 3}, {"m", 70}},
                                   {{"n", 1}, {"m", 1}},
                                   {{"n", 2}, {"m", 63}},
                                   {{"n", 0}, {"m", 70}},
                                   {{"n", 3}, {"m", 0}}}});
  }
}

TEST_CASE("values that vary share the arena, and pass through views and copies", "[extents]") {
  expect_everywhere(module_of({"n in [0, 12]"}, "%x: f32[n,2,9], %c: f32[5]",
                              "    %a = negate %x : f32[n,2,9]\n"
                              "    %b = reshape %a : f32[2*n,9]\n"
                              "    %d = tanh %b : f32[2*n,9]\n"
                              "    %e = multiply %d, %b : f32[2*n,9]\n"
                              "    %k = negate %c : f32[5]\n"
                              "    %g = reshape %e : f32[18*n]\n"
                              "    %r = concatenate %k, %g {dim = 0} : f32[18*n+5]",
                              "f32[18*n+5]"),
                    {.extents = values_of("n", {12, 0, 1, 3, 12, 5})});
  expect_everywhere(module_of({"n in [0, 12]"}, "%x: f32[n,9]", "    %r = reshape %x : f32[9*n]", "f32[9*n]"),
                    {.extents = values_of("n", {12, 0, 1})});
}

namespace {

std::string constant_text(int64_t rows, int64_t columns) {
  return random_constant(rows * columns, 3) + " : f32[" + std::to_string(rows) + "," +
         std::to_string(columns) + "]";
}

// The product of f32[m,k] and constant columns f32[k,n].
std::string product_of(int64_t k, int64_t n, const std::string& bound, const std::string& attributes = "") {
  std::string type = "f32[m," + std::to_string(n) + "]";
  return module_of(
      {"m in " + bound}, "%x: f32[m," + std::to_string(k) + "]",
      "    %w = " + constant_text(k, n) + "\n" +
          "    %r = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]" +
          attributes + "} : " + type,
      type);
}

} // namespace

TEST_CASE("rows of a product vary", "[extents]") {
  for (auto [k, n] : {std::pair<int64_t, int64_t>{1, 1}, {7, 5}, {16, 33}, {40, 64}})
    for (int64_t bound : {1, 3, 30}) {
      std::vector<int64_t> all;
      for (int64_t m = bound; m >= 0; --m) all.push_back(m);
      expect_everywhere(product_of(k, n, "[0, " + std::to_string(bound) + "]"),
                        {.extents = values_of("m", all)});
    }
}

TEST_CASE("rows of a product vary in every order of loops", "[extents]") {
  for (const char* plan : {"direct tile 4x1", "direct tile 4x2 rows outermost", "direct tile 3x1 splits 2",
                           "direct tile 4x1 split_k 3", "direct tile 4x1 row_block 8",
                           "direct tile 2x1 split_k 2 row_block 4", "direct tile 4x2 split_m 3",
                           "direct tile 4x1 optimize_size", "direct tile 1x2", "direct tile 12x1"}) {
    INFO(plan);
    expect_everywhere(product_of(24, 40, "[0, 40]", std::string(", plan = \"") + plan + "\""),
                      {.extents = values_of("m", {40, 0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 16, 31, 33, 34})});
  }
}

TEST_CASE("columns that come from far are asked for by as many rows as a run has", "[extents]") {
  std::string text = product_of(128, 160, "[0, 2000]"); // far more rows than a group of columns has lines
  expect_everywhere(text, {.tolerance = 1e-5, .extents = values_of("m", {2000, 0, 1, 2, 7, 16, 17, 130})});
  kernel::Program program = lower_text(text, "x86-64-v3");
  CHECK(count_ops(program.kernels[0]->body, kernel::OpKind::Prefetch) > 0);
}

TEST_CASE("rows of narrow products vary", "[extents]") {
  auto narrow = [](const std::string& lhs, const std::string& rhs, const std::string& result) {
    return module_of({"m in [0, 19]"}, "%x: " + lhs + "[m,20], %y: " + rhs + "[20,24]",
                     "    %r = dot %x, %y {lhs_batch = [], rhs_batch = [], lhs_contract = [1], "
                     "rhs_contract = [0], result = " +
                         result + "} : " + result + "[m,24]",
                     result + "[m,24]");
  };
  auto values = values_of("m", {19, 0, 1, 2, 6, 7, 13});
  expect_everywhere(narrow("i8", "i8", "i32"), {.extents = values});
  expect_everywhere(narrow("bf16", "bf16", "f32"), {.extents = values});
  expect_everywhere(narrow("f16", "f16", "f32"), {.extents = values});
}

TEST_CASE("rows of several dims that vary are one", "[extents]") {
  std::vector<std::map<std::string, int64_t>> values;
  for (int64_t b : {0, 1, 2, 5})
    for (int64_t s : {0, 1, 3, 13}) values.push_back({{"b", b}, {"s", s}});
  std::vector<std::string> symbols = {"b in [0, 5]", "s in [0, 13]"};
  std::string w = "    %w = " + constant_text(12, 21) + "\n";
  expect_everywhere(module_of(symbols, "%x: f32[b,s,12]",
                              w + "    %r = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [2], "
                                  "rhs_contract = [0]} : f32[b,s,21]",
                              "f32[b,s,21]"),
                    {.extents = values});
  // With an epilogue that reads per row and per column, and beside every element.
  std::string epilogue =
      "    %r = fusion %x, %w, %c, %y {kind = contraction} region (%p: f32[b,s,12], %q: f32[12,21], "
      "%u: f32[21], %v: f32[b,s,21]) {\n"
      "      %d = dot %p, %q {lhs_batch = [], rhs_batch = [], lhs_contract = [2], rhs_contract = [0]} : "
      "f32[b,s,21]\n"
      "      %e = broadcast_in_dim %u {dims = [2]} : f32[b,s,21]\n"
      "      %f = add %d, %e : f32[b,s,21]\n"
      "      %g = tanh %f : f32[b,s,21]\n"
      "      %h = add %g, %v : f32[b,s,21]\n"
      "      return %h\n"
      "    } : f32[b,s,21]";
  expect_everywhere(
      module_of(symbols, "%x: f32[b,s,12], %c: f32[21], %y: f32[b,s,21]", w + epilogue, "f32[b,s,21]"),
      {.extents = values});
  // Rows do not lie evenly: loops run around the tiles.
  expect_everywhere(module_of(symbols, "%x: f32[b,12,s]",
                              w + "    %r = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [1], "
                                  "rhs_contract = [0]} : f32[b,s,21]",
                              "f32[b,s,21]"),
                    {.extents = values});
  // Batches with columns of their own, which are read where they lie.
  expect_everywhere(module_of(symbols, "%x: f32[b,s,12], %y: f32[b,12,21]",
                              "    %r = dot %x, %y {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], "
                              "rhs_contract = [1]} : f32[b,s,21]",
                              "f32[b,s,21]"),
                    {.extents = values});
  // The rhs varies: it has the rows.
  expect_everywhere(module_of(symbols, "%x: f32[9,12], %y: f32[s,12]",
                              "    %r = dot %x, %y {lhs_batch = [], rhs_batch = [], lhs_contract = [1], "
                              "rhs_contract = [1]} : f32[9,s]",
                              "f32[9,s]"),
                    {.extents = values});
}

namespace {

struct VaryingConvolution {
  const char *in, *filter, *window, *out; // dims of the input and of the result, "3,3"; "3x3 pad 1_1x1_1"
  int64_t channels, filters;
  const char* layout; // layout of both
  int64_t groups = 1;
  const char* plan = "";
};

// Convolution of [b,C,in...] in a fusion with bias and the maximum of it and 0.
std::string convolution_of(const std::vector<std::string>& symbols, const VaryingConvolution& c) {
  std::string filters = std::to_string(c.filters), in = std::string(c.in);
  auto tensor = [](const std::string& batch, int64_t channels, const char* dims) {
    return "f32[" + batch + "," + std::to_string(channels) + "," + dims + "]";
  };
  std::string x = tensor("b", c.channels, c.in), y = tensor("b", c.filters, c.out),
              w = tensor(filters, c.channels / c.groups, c.filter);
  int64_t taps = 1;
  for (const char* at = c.filter; *at; ++at)
    if (*at != ',') taps *= *at - '0';
  std::string plan = *c.plan ? std::string(", plan = \"") + c.plan + "\"" : "";
  return module_of(symbols, "%x: " + x,
                   "    %xb = copy %x : " + x + c.layout +
                       "\n    %w = " + random_constant(c.filters * c.channels / c.groups * taps, 4) + " : " +
                       w + "\n    %c = " + random_constant(c.filters, 5) + " : f32[" + filters + "]\n" +
                       "    %y = fusion %xb, %w, %c {kind = contraction" + plan + "} region (%p: " + x +
                       c.layout + ", %q: " + w + ", %u: f32[" + filters +
                       "]) {\n      %s = convolution %p, %q {window = " + c.window +
                       ", groups = " + std::to_string(c.groups) + "} : " + y + c.layout +
                       "\n      %v = broadcast_in_dim %u {dims = [1]} : " + y + c.layout +
                       "\n      %t = add %s, %v : " + y + c.layout +
                       "\n      %z = constant [0] : f32[]\n      %zs = broadcast_in_dim %z {dims = []} : " +
                       y + c.layout + "\n      %m = maximum %t, %zs : " + y + c.layout +
                       "\n      return %m\n    } : " + y + c.layout + "\n    %r = copy %y : " + y,
                   y);
}

} // namespace

TEST_CASE("every dim varies in dots of computed operands", "[extents]") {
  // The columns read where they lie, packed part by part, and of the other operand; and as many as a run has.
  std::vector<std::map<std::string, int64_t>> values;
  for (int64_t b : {0, 1, 3})
    for (int64_t k : {0, 1, 2, 7, 33}) values.push_back({{"b", b}, {"k", k}});
  struct Dots {
    const char *x, *y, *dims, *r;
  };
  const Dots cases[] = {
      {"f32[b,13,k]", "f32[b,k,24]", "[0], [2], [0], [1]", "f32[b,13,24]"},
      {"f32[b,k,13]", "f32[b,k,24]", "[0], [1], [0], [1]", "f32[b,13,24]"},
      {"f32[k,k]", "f32[k,19]", "[], [1], [], [0]", "f32[k,19]"},
      {"f32[b,7,16]", "f32[b,40,16]", "[0], [2], [0], [2]", "f32[b,7,40]"},
      {"f32[b,2,k,8]", "f32[b,2,21,8]", "[0, 1], [3], [0, 1], [3]", "f32[b,2,k,21]"},
      {"f32[b,2,21,8]", "f32[b,2,k,8]", "[0, 1], [3], [0, 1], [3]", "f32[b,2,21,k]"},
      {"f32[b,2,9,k]", "f32[b,k,2,16]", "[0, 1], [3], [0, 2], [1]", "f32[b,2,9,16]"},
      {"f32[b,k,16]", "f32[b,16,k]", "[0], [2], [0], [1]", "f32[b,k,k]"},
      {"f32[b,k,k]", "f32[b,k,k]", "[0], [2], [0], [1]", "f32[b,k,k]"},
      {"f32[b,k,2,8]", "f32[b,k,2,8]", "[0, 2], [3], [0, 2], [3]", "f32[b,2,k,k]"},
  };
  for (const Dots& c : cases) {
    INFO(c.x << " " << c.y);
    std::istringstream dims(c.dims);
    std::string lhs_batch, lhs_contract, rhs_batch, rhs_contract;
    auto read = [&](std::string& list) {
      std::getline(dims, list, ']');
      list = list.substr(list.find('[')) + "]";
    };
    read(lhs_batch), read(lhs_contract), read(rhs_batch), read(rhs_contract);
    expect_everywhere(module_of({"b in [0, 3]", "k in [0, 33]"}, std::string("%x: ") + c.x + ", %y: " + c.y,
                                "    %r = dot %x, %y {lhs_batch = " + lhs_batch +
                                    ", lhs_contract = " + lhs_contract + ", rhs_batch = " + rhs_batch +
                                    ", rhs_contract = " + rhs_contract + "} : " + c.r,
                                c.r),
                      {.extents = values});
  }
}

TEST_CASE("batch and positions of a convolution vary", "[extents]") {
  std::vector<std::string> symbols = {"b in [0, 3]", "w in [0, 21]"};
  std::vector<std::map<std::string, int64_t>> values;
  for (int64_t w : {21, 0, 1, 2, 3, 4, 7, 8, 14, 15})
    for (int64_t b : {1, 3}) values.push_back({{"b", b}, {"w", w}});
  values.push_back({{"b", 0}, {"w", 9}});
  const VaryingConvolution cases[] = {
      {"w", "1", "1", "w", 8, 16, ""},
      {"w", "3", "3 pad 1_1", "w", 6, 20, ""},
      {"w", "3", "3 pad 1_1", "w", 16, 32, "{0,1,2:1x16}"},
      {"w", "5", "5 pad 4_0", "w", 3, 8, ""},
      {"w", "3", "3 pad 2_2 dilate 2", "w", 16, 16, "{0,1,2:1x16}"},
      {"w", "3", "3 pad 1_1 stride 2", "(w - 1) floordiv 2 + 1", 16, 24, "{0,1,2:1x16}"},
      {"5,w", "3,3", "3x3 pad 1_1x1_1", "5,w", 16, 16, "{0,1,2,3:1x16}"},
      {"w,5", "3,3", "3x3 pad 1_1x1_1", "w,5", 16, 16, "{0,1,2,3:1x16}"},
      {"w,9", "3,3", "3x3 pad 1_1x1_1", "w,9", 8, 8, ""},
      {"w,w", "1,1", "1x1", "w,w", 16, 16, "{0,1,2,3:1x16}"},
      {"w,4", "1,1", "1x1", "w,4", 7, 9, ""},
      {"w", "3", "3 pad 1_1", "w", 32, 32, "{0,1,2:1x16}", 2},
      {"w", "3", "3 pad 1_1", "w", 16, 40, "{0,1,2:1x16}", 1, "direct tile 4x2 rows outermost"},
      {"w", "3", "3 pad 1_1", "w", 16, 40, "{0,1,2:1x16}", 1, "direct tile 3x1"},
      // The tiles at the edges come first, and are lower.
      {"w", "3", "3 pad 1_1", "w", 16, 80, "{0,1,2:1x16}", 1,
       "direct tile 3x5 rows outermost rolled_epilogue"},
  };
  for (const VaryingConvolution& c : cases) {
    INFO(c.in << " " << c.window << " " << c.layout << " " << c.plan);
    LoweredOptions options{.cpus = {"x86-64-v3", "native"}, .extents = values};
    expect_everywhere(convolution_of(symbols, c), options);
  }
  // Tiles are items of their own where there is no other loop around them.
  std::vector<std::map<std::string, int64_t>> alone;
  for (int64_t w = 0; w <= 21; ++w) alone.push_back({{"b", 1}, {"w", w}});
  expect_everywhere(convolution_of({"b in [1, 1]", "w in [0, 21]"},
                                   VaryingConvolution{"w", "3", "3 pad 1_1", "w", 16, 40, "{0,1,2:1x16}", 1,
                                                      "direct tile 4x2 rows outermost"}),
                    {.cpus = {"x86-64-v3", "native"}, .extents = alone});
  // Without padding there is no result of less than a window.
  std::erase_if(values, [](const auto& value) { return value.at("w") < 3; });
  expect_everywhere(convolution_of({"b in [0, 3]", "w in [3, 21]"},
                                   VaryingConvolution{"w", "3", "3", "w - 2", 16, 24, "{0,1,2:1x16}"}),
                    {.cpus = {"x86-64-v3", "native"}, .extents = values});
}

TEST_CASE("a convolution of which positions lie outside the input at any extent", "[extents]") {
  for (const char* window : {"1 pad 3_4 stride 16", "1 pad 9_1 stride 9", "3 pad 20_0 stride 40"})
    expect_everywhere(convolution_of({"b in [1, 2]", "w in [1, 8]"},
                                     VaryingConvolution{"w", std::string(window, 1).c_str(), window,
                                                        window[6] == '9' ? "2" : "1", 2, 3, ""}),
                      {.cpus = {"x86-64-v3", "native"},
                       .extents = {{{"b", 2}, {"w", 1}}, {{"b", 1}, {"w", 5}}, {{"b", 2}, {"w", 8}}}});
}

TEST_CASE("a convolution's padding begins where the input ends, also where its positions are static",
          "[extents]") {
  expect_everywhere(convolution_of({"b in [1, 2]", "w in [9, 10]"},
                                   VaryingConvolution{"w", "3", "3 pad 1_1 stride 2", "5", 4, 8, ""}),
                    {.cpus = {"x86-64-v3", "native"},
                     .extents = {{{"b", 2}, {"w", 9}}, {{"b", 2}, {"w", 10}}, {{"b", 1}, {"w", 9}}}});
}

TEST_CASE("the batch of a transposed convolution varies", "[extents]") {
  const VaryingConvolution cases[] = {
      {"5", "4", "4 pad 2_2 input_dilate 2", "10", 3, 16, ""},
      {"5", "4", "4 pad 2_2 input_dilate 2", "10", 16, 32, "{0,1,2:1x16}"},
      {"3,5", "2,2", "2x2 pad 1_1x1_1 input_dilate 2x2", "6,10", 16, 16, "{0,1,2,3:1x16}"},
  };
  for (const VaryingConvolution& c : cases) {
    INFO(c.in << " " << c.layout);
    std::string text = convolution_of({"b in [0, 5]"}, c);
    expect_everywhere(text, {.cpus = {"x86-64-v3", "native"}, .extents = values_of("b", {0, 1, 2, 3, 4, 5})});
    bool has_phases = false;
    for (const auto& kernel : lower_text(text, "x86-64-v3").kernels)
      has_phases |= kernel->algorithm.find("direct") != std::string::npos;
    CHECK(has_phases);
  }
}

TEST_CASE("Winograd's algorithm where batch and positions vary", "[extents]") {
  const VaryingConvolution cases[] = {
      {"w,w", "3,3", "3x3 pad 1_1x1_1", "w,w", 16, 16, "", 1, "winograd 4x4"},
      {"w,w", "3,3", "3x3 pad 2_0x0_2", "w,w", 20, 40, "", 1, "winograd 2x4 tile 3x1 batch 4"},
      {"5,w", "3,3", "3x3 pad 1_1x1_1", "5,w", 16, 40, "", 1, "winograd 4x2 tile 4x2 batch 3"},
      {"w,9", "3,3", "3x3 pad 1_1x1_1", "w,9", 5, 16, "", 1, "winograd 2x2 tile 2x2 batch 5 rolled_epilogue"},
      {"w,w", "5,5", "5x5 pad 2_2x2_2", "w,w", 16, 16, "", 1, "winograd 2x2"},
      {"w", "3", "3 pad 1_1", "w", 16, 24, "", 1, "winograd 1x4"},
  };
  const VaryingConvolution unpadded = {"w,w", "3,3", "3x3", "w - 2,w - 2", 16, 16, "", 1, "winograd 4x4"};
  std::vector<std::map<std::string, int64_t>> values = {{{"b", 0}, {"w", 9}}, {{"b", 2}, {"w", 0}}};
  for (int64_t w = 1; w <= 14; ++w) values.push_back({{"b", w % 3 + 1}, {"w", w}});
  auto large = values;
  large.erase(large.begin() + 1, large.begin() + 4);
  // Transforms in registers and edges by masks, and both by way of memory.
  for (const std::string& cpu : runnable_cpus()) {
    std::string block = ":1x" + std::to_string(target_of("", cpu).cpu.channel_block()) + "}";
    auto expect = [&](const char* symbol, VaryingConvolution c, const auto& extents) {
      INFO(cpu << " " << c.in << " " << c.window << " " << c.plan);
      std::string layout = (std::string(c.in).find(',') == std::string::npos ? "{0,1,2" : "{0,1,2,3") + block;
      c.layout = layout.c_str();
      expect_everywhere(convolution_of({"b in [0, 3]", symbol}, c), {.cpus = {cpu}, .extents = extents});
    };
    for (const VaryingConvolution& c : cases) expect("w in [0, 14]", c, values);
    expect("w in [3, 14]", unpadded, large);
  }
}

TEST_CASE("Winograd's algorithm where the batch alone varies", "[extents]") {
  for (const char* cpu : {"x86-64", "x86-64-v3", "native"}) {
    std::string layout = "{0,1,2,3:1x" + std::to_string(target_of("", cpu).cpu.channel_block()) + "}";
    for (const char* plan :
         {"winograd 4x4 tile 3x1 batch 3", "winograd 2x4 tile 2x2 batch 6", "winograd 2x2"}) {
      INFO(cpu << ": " << plan);
      expect_everywhere(convolution_of({"b in [0, 5]"}, {"7,9", "3,3", "3x3 pad 1_1x1_1", "7,9", 16, 24,
                                                         layout.c_str(), 1, plan}),
                        {.cpus = {cpu}, .extents = values_of("b", {5, 0, 1, 2, 3, 4})});
    }
  }
}

TEST_CASE("what does not take dims that vary says so", "[extents]") {
  CHECK(lowering_error(
            module_of({"n in [0, 9]"}, "%x: f32[n - 2]", "    %r = negate %x : f32[n - 2]", "f32[n - 2]")) ==
        "instruction (parameter): a dim of f32[n - 2] may be negative, by the bounds of its symbols");
}

} // namespace firn::test
