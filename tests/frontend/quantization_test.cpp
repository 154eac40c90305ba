// Quantised products, tables of few bits and blocks: parameters of one element, per row, column or block,
// those that are left out, and dims that vary.
#include "tests/frontend/import_node.h"

#include "compiler/graph/evaluate.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::test;

namespace {

using Doubles = std::vector<double>;
using Dims = std::vector<int64_t>;

constexpr const char* kContrib = "com.microsoft";
constexpr int kI4 = 22; // TensorProto.DataType

LiteralRef u8(Dims dims, const Doubles& values) {
  return Literal::of(DType::U8, std::move(dims), values);
}
LiteralRef i32(Dims dims, const Doubles& values) {
  return Literal::of(DType::I32, std::move(dims), values);
}

// A node whose inputs are those of its model, each of these literals' types; "" where there is none.
struct Case {
  Names names;
  std::vector<Message> inputs;
  std::vector<LiteralRef> values;
  void add(const char* name, int type, const LiteralRef& literal) {
    names.push_back(name);
    inputs.push_back(value(name, type, {literal->dims().begin(), literal->dims().end()}));
    values.push_back(literal);
  }
  void leave_out() { names.push_back(""); }
  Imported import(const char* op, const std::vector<Message>& attributes = {},
                  const char* domain = kContrib) const {
    return import_node(node(op, names, {"y"}, attributes, domain), inputs, {});
  }
  LiteralRef run(const char* op, const std::vector<Message>& attributes = {},
                 const char* domain = kContrib) const {
    Imported imported = import(op, attributes, domain);
    INFO(imported.messages);
    REQUIRE(imported.model);
    return test::run(imported, values)[0];
  }
};

// QLinearMatMul of a by b where all other parameters say nothing.
Case product(const LiteralRef& a, const LiteralRef& b, const LiteralRef& a_scale, const LiteralRef& a_zero) {
  Case made;
  made.add("a", U8, a);
  made.add("as", F32, a_scale);
  made.add("az", U8, a_zero);
  made.add("b", U8, b);
  made.add("bs", F32, f32({1}, {1}));
  made.add("bz", U8, u8({1}, {0}));
  made.add("ys", F32, f32({1}, {1}));
  made.add("yz", U8, u8({1}, {0}));
  return made;
}

} // namespace

// --- Parameters of products.

TEST_CASE("a parameter of one element leaves the product of vectors as many dims as it has") {
  LiteralRef a = u8({2}, {3, 4}), b = u8({2}, {5, 6}), one = f32({1}, {2}), zero = u8({1}, {1});
  LiteralRef columns = u8({2, 3}, {1, 2, 3, 4, 5, 6}), rows = u8({3, 2}, {1, 2, 3, 4, 5, 6});
  auto row = product(a, columns, one, zero).run("QLinearMatMul", {}, "");
  CHECK(row->dims() == Dims{3});
  CHECK(numbers(row) == Doubles{28, 38, 48});
  auto column = product(rows, b, one, zero).run("QLinearMatMul", {}, "");
  CHECK(column->dims() == Dims{3});
  CHECK(numbers(column) == Doubles{12, 56, 100});
  auto scalar = product(a, b, one, zero).run("QLinearMatMul", {}, "");
  CHECK(scalar->dims() == Dims{});
  CHECK(numbers(scalar) == Doubles{56});
}

TEST_CASE("parameters per row go along the rows of the product with a vector") {
  LiteralRef rows = u8({3, 2}, {1, 2, 3, 4, 5, 6}), b = u8({2}, {5, 6});
  auto y = product(rows, b, f32({3}, {1, 2, 3}), u8({3}, {0, 1, 5})).run("QLinearMatMul", {}, "");
  CHECK(y->dims() == Dims{3});
  CHECK(numbers(y) == Doubles{17, 56, 18});
}

TEST_CASE("parameters of each matrix of a batch are in its own shape") {
  LiteralRef a = u8({2, 2, 1}, {1, 2, 3, 4}), scale = f32({2, 2, 1}, {1, 2, 3, 4}),
             zero = u8({2, 2, 1}, {0, 1, 0, 1});
  auto y = product(a, u8({1, 2}, {1, 2}), scale, zero).run("QLinearMatMul", {}, "");
  CHECK(y->dims() == Dims{2, 2, 2});
  CHECK(numbers(y) == Doubles{1, 2, 2, 4, 9, 18, 12, 24});
  auto by_vector = product(a, u8({1}, {2}), scale, zero).run("QLinearMatMul", {}, "");
  CHECK(by_vector->dims() == Dims{2, 2});
  CHECK(numbers(by_vector) == Doubles{2, 4, 18, 24});
}

TEST_CASE("the result of a product may have a scale and a zero point per row") {
  Case made = product(u8({2, 1}, {10, 20}), u8({1, 2}, {1, 2}), f32({}, {1}), u8({}, {0}));
  made.values[6] = f32({2}, {1, 10});
  made.values[7] = u8({2}, {5, 7});
  made.inputs[6] = value("ys", F32, {2});
  made.inputs[7] = value("yz", U8, {2});
  CHECK(numbers(made.run("QLinearMatMul", {}, "")) == Doubles{15, 25, 9, 11});
}

TEST_CASE("parameters that fit no dim of their factor are refused") {
  LiteralRef a = u8({2}, {3, 4}), rows = u8({3, 2}, {1, 2, 3, 4, 5, 6}), columns = u8({2, 1}, {1, 2});
  LiteralRef one = f32({}, {1}), zero = u8({}, {0});
  for (const Case& made : {product(a, columns, f32({2}, {1, 2}), u8({2}, {0, 0})),
                           product(rows, columns, f32({2}, {1, 2}), u8({2}, {0, 0})),
                           product(rows, columns, f32({3, 2}, Doubles(6, 1)), zero)}) {
    Imported imported = made.import("QLinearMatMul", {}, "");
    CHECK(imported.fault == Fault::Model);
    CHECK(contains(imported.messages, "wants one element"));
  }
  // A zero point per row of b does not widen its one column.
  Case made = product(rows, columns, one, zero);
  made.values[5] = u8({2}, {0, 0});
  made.inputs[5] = value("bz", U8, {2});
  CHECK(contains(made.import("QLinearMatMul", {}, "").messages, "or one per column"));
}

TEST_CASE("other products of a vector keep its dims too") {
  Case integers;
  integers.add("a", U8, u8({2}, {3, 4}));
  integers.add("b", U8, u8({2, 2}, {1, 2, 3, 4}));
  Case floats = integers;
  integers.add("az", U8, u8({1}, {1}));
  integers.add("bz", U8, u8({1}, {1}));
  auto sums = integers.run("MatMulInteger", {}, "");
  CHECK(sums->dims() == Dims{2});
  CHECK(numbers(sums) == Doubles{6, 11});
  floats.add("as", F32, f32({1}, {2}));
  floats.add("bs", F32, f32({2}, {1, 10}));
  floats.leave_out();
  floats.add("bz", U8, u8({2}, {1, 2}));
  auto y = floats.run("MatMulIntegerToFloat");
  CHECK(y->dims() == Dims{2});
  CHECK(numbers(y) == Doubles{16, 160});
}

TEST_CASE("biases of a quantised convolution are as many as its filters, whose number varies") {
  std::vector<Message> inputs{value("x", U8, {1, 1, 1}), value("w", U8, {"n", 1, 1}), value("b", I32, {"m"}),
                              value("s", F32, {}), value("z", U8, {})};
  Imported imported = import_node(node("QLinearConv", {"x", "s", "z", "w", "s", "z", "s", "z", "b"}, {"y"}),
                                  inputs, in_ranges({"n", "m"}));
  INFO(imported.messages);
  REQUIRE(imported.model);
  LiteralRef x = u8({1, 1, 1}, {3}), w = u8({2, 1, 1}, {1, 2}), one = f32({}, {1}), zero = u8({}, {0});
  CHECK(numbers(run(imported, {x, w, i32({2}, {10, 20}), one, zero})[0]) == Doubles{13, 26});
  CHECK(ends_early(imported, {x, w, i32({3}, {10, 20, 30}), one, zero}));
}

// --- Blocks.

TEST_CASE("bytes of a table lie around the middle where zero points are left out") {
  Doubles bytes(16, 0), twos;
  bytes[0] = 0xe4; // 0, 1, 2, 3
  for (auto [bits, expected] : {std::pair<int64_t, Doubles>{8, {100, -128}},
                                {4, {-4, 6, -8, -8}},
                                {2, {-2, -1, 0, 1, -2, -2, -2, -2}}}) {
    Case made;
    made.add("x", U8, u8({1, 16}, bytes));
    made.add("i", I64, i64({1}, {0}));
    made.add("s", F32, f32({1, 8 / bits}, Doubles(static_cast<size_t>(8 / bits), 1)));
    Doubles y =
        numbers(made.run("GatherBlockQuantized", {attribute("bits", bits), attribute("block_size", 16)}));
    REQUIRE(y.size() == static_cast<size_t>(128 / bits));
    y.resize(expected.size());
    CHECK(y == expected);
  }
}

TEST_CASE("blocks of a table lie along any dim, the one that is gathered too") {
  Model model;
  model.opsets = {{"", 21}, {kContrib, 1}};
  std::vector<uint8_t> nibbles; // i4 [18,2]: 0, 0, 1, 1, ..., 7, 7, 0, 0, ...
  for (int i = 0; i < 18; ++i) nibbles.push_back(static_cast<uint8_t>(i % 8 * 0x11));
  model.graph.initializers = {tensor_header("x", kI4, {18, 2}).raw(9, nibbles),
                              floats("s", {2, 2}, {1, 10, 100, 1000})};
  model.graph.outputs = {value("y", F32, {})};
  auto gathered = [&](int64_t axis, const std::vector<int64_t>& indices) {
    model.graph.initializers.resize(2);
    model.graph.initializers.push_back(ints("i", indices));
    model.graph.nodes = {
        node("GatherBlockQuantized", {"x", "i", "s"}, {"y"},
             {attribute("gather_axis", axis), attribute("quantize_axis", 0), attribute("block_size", 16)},
             kContrib)};
    Imported imported = import_model(model);
    INFO(imported.messages);
    REQUIRE(imported.model);
    return numbers(run(imported, {})[0]);
  };
  CHECK(gathered(0, {2, 17, -1, -18}) == Doubles{2, 20, 100, 1000, 100, 1000, 0, 0});
  Doubles second = gathered(1, {1});
  REQUIRE(second.size() == 18);
  CHECK(Doubles(second.begin() + 14, second.end()) == Doubles{60, 70, 0, 1000});
}

TEST_CASE(
    "tables of bytes are gathered along their first dim, with blocks along another where they are packed") {
  for (int64_t gather_axis : {0, 1}) {
    Case made;
    made.add("x", U8, u8({16, 16}, Doubles(256, 0)));
    made.add("i", I64, i64({1}, {0}));
    made.add("s", F32, f32({1, 32}, Doubles(32, 1)));
    Imported imported =
        made.import("GatherBlockQuantized", {attribute("gather_axis", gather_axis),
                                             attribute("quantize_axis", 0), attribute("block_size", 16)});
    CHECK(imported.fault == Fault::Model);
    CHECK(contains(imported.messages, "wants to be gathered along axis 0"));
  }
}

TEST_CASE("weights of few bits multiply rows whose extent varies, or the run ends") {
  Model model;
  model.opsets = {{"", 21}, {kContrib, 1}};
  model.graph.inputs = {value("a", F32, {"m", "k"})};
  model.graph.outputs = {value("y", F32, {})};
  model.graph.initializers = {tensor_header("w", U8, {1, 1, 16}).raw(9, std::vector<uint8_t>(16, 130)),
                              floats("s", {1, 1}, {0.5})};
  model.graph.nodes = {node(
      "MatMulNBits", {"a", "w", "s"}, {"y"},
      {attribute("K", 16), attribute("N", 1), attribute("bits", 8), attribute("block_size", 16)}, kContrib)};
  onnx::ImportOptions options;
  for (const char* name : {"m", "k"}) options.ranges[name] = {1, 32, 1, {}};
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  CHECK(numbers(run(imported, {f32({1, 16}, Doubles(16, 3))})[0]) == Doubles{48});
  CHECK(ends_early(imported, {f32({1, 17}, Doubles(17, 3))}));
}

TEST_CASE("rows that weights of few bits multiply may be bytes where accuracy_level says so") {
  for (int level : {0, 1, 4}) {
    Imported imported =
        import_node(node("MatMulNBits", {"a", "w", "s"}, {"y"},
                         {attribute("K", 16), attribute("N", 1), attribute("bits", 8),
                          attribute("block_size", 16), attribute("accuracy_level", level)},
                         kContrib),
                    {value("a", F32, {1, 16}), value("w", U8, {1, 1, 16}), value("s", F32, {1})}, {});
    INFO(imported.messages);
    REQUIRE(imported.model);
    CHECK(contains(imported.text(), "factors = i8") == (level == 4));
  }
}

TEST_CASE("constant weights of few bits stay as few, beside the zero points of their blocks") {
  struct Row {
    int64_t bits;
    std::string type;
    std::vector<uint8_t> zeros; // 1, 2, 3
  };
  const LiteralRef a = f32({1, 48}, Doubles(48, 1));
  for (const Row& row : {Row{2, "u2", {0x39}}, Row{4, "u4", {0x21, 0x03}}, Row{8, "u8", {1, 2, 3}}}) {
    const std::vector<uint8_t> none(static_cast<size_t>(6 * row.bits), 0);
    Model model;
    model.opsets = {{"", 21}, {kContrib, 1}};
    model.graph.inputs = {value("a", F32, {1, 48})};
    model.graph.outputs = {value("y", F32, {})};
    for (bool has_zeros : {false, true}) {
      model.graph.initializers = {tensor_header("w", U8, {1, 3, 2 * row.bits}).raw(9, none),
                                  floats("s", {3}, {1, 10, 100})};
      if (has_zeros)
        model.graph.initializers.push_back(
            tensor_header("z", U8, {static_cast<int64_t>(row.zeros.size())}).raw(9, row.zeros));
      model.graph.nodes = {node(
          "MatMulNBits", {"a", "w", "s", has_zeros ? "z" : ""}, {"y"},
          {attribute("K", 48), attribute("N", 1), attribute("bits", row.bits), attribute("block_size", 16)},
          kContrib)};
      Imported imported = import_model(model);
      INFO(imported.messages);
      REQUIRE(imported.model);
      const std::string text = imported.text();
      INFO(text);
      CHECK(contains(text, ": " + row.type + "[1,3,16]"));
      CHECK(contains(text, ": " + row.type + (has_zeros ? "[1,3,1]" : "[]")));
      CHECK(contains(text, "= dequantize "));
      const double middle = static_cast<double>(int64_t{1} << (row.bits - 1));
      CHECK(numbers(run(imported, {a})[0]) == Doubles{-16 * (has_zeros ? 1 + 20 + 300 : middle * 111)});
    }
  }
}

TEST_CASE("parameters of weights of few bits are as many as blocks") {
  auto import_product = [](const WireDim& scales, const WireDim& zeros,
                           const std::vector<const char*>& varying) {
    return import_node(
        node("MatMulNBits", {"a", "w", "s", "z"}, {"y"},
             {attribute("K", 32), attribute("N", 1), attribute("bits", 8), attribute("block_size", 16)},
             kContrib),
        {value("a", F32, {1, 32}), value("w", U8, {1, 2, 16}), value("s", F32, {scales}),
         value("z", U8, {1, zeros})},
        in_ranges(varying));
  };
  Imported varying = import_product("n", "m", {"n", "m"});
  INFO(varying.messages);
  REQUIRE(varying.model);
  LiteralRef a = f32({1, 32}, Doubles(32, 1)), w = u8({1, 2, 16}, Doubles(32, 4)), s = f32({2}, {1, 2});
  CHECK(numbers(run(varying, {a, w, s, u8({1, 2}, {3, 2})})[0]) == Doubles{16 + 64});
  CHECK(ends_early(varying, {a, w, s, u8({1, 3}, {3, 2, 1})}));
  CHECK(import_product(3, 2, {}).fault == Fault::Model);
  CHECK(import_product(2, 3, {}).fault == Fault::Model);
}

TEST_CASE("columns of weights of few bits take the scales and zero points of the blocks that they name") {
  Case made;
  Doubles unit(32, 0), blocks(32, 1), bytes(32, 9);
  unit[0] = unit[20] = 1;
  blocks[20] = 0;
  made.add("a", F32, f32({1, 32}, unit));
  made.add("w", U8, u8({1, 2, 16}, bytes));
  made.add("s", F32, f32({1, 2}, {1, 10}));
  made.add("z", U8, u8({1, 2}, {1, 2}));
  made.add("g", I32, i32({32}, blocks));
  CHECK(numbers(made.run("MatMulNBits", {attribute("K", 32), attribute("N", 1), attribute("bits", 8),
                                         attribute("block_size", 16)})) == Doubles{70 + 8});
}

TEST_CASE("data in blocks may vary along the other dims") {
  for (bool narrows : {true, false}) {
    Imported imported = import_node(node(narrows ? "QuantizeLinear" : "DequantizeLinear", {"x", "s"}, {"y"},
                                         {attribute("axis", 1), attribute("block_size", 2)}),
                                    {value("x", narrows ? F32 : U8, {"n", 3}), value("s", F32, {"m", 2})},
                                    in_ranges({"n", "m"}));
    INFO(imported.messages);
    REQUIRE(imported.model);
    Doubles numbers_of{2, 4, 6, 8, 10, 12};
    LiteralRef x = narrows ? f32({2, 3}, numbers_of) : u8({2, 3}, numbers_of);
    Doubles y = numbers(run(imported, {x, f32({2, 2}, {1, 2, 2, 4})})[0]);
    CHECK(y == (narrows ? Doubles{2, 4, 3, 4, 5, 3} : Doubles{2, 4, 12, 16, 20, 48}));
    CHECK(ends_early(imported, {x, f32({3, 2}, Doubles(6, 1))}));
  }
}

TEST_CASE("scales that are not one per block are refused") {
  Case made;
  made.add("x", F32, f32({2, 4}, Doubles(8, 1)));
  made.add("s", F32, f32({2, 1}, {1, 1}));
  Imported imported = made.import("QuantizeLinear", {attribute("axis", 1), attribute("block_size", 2)}, "");
  CHECK(imported.fault == Fault::Model);
  CHECK(contains(imported.messages, "wants f32[2,2]"));
}

// --- Operators between a dequantisation and a quantisation.

TEST_CASE("zero points that are left out are zero") {
  Case sum;
  for (const char* name : {"a", "b"}) {
    sum.add(name, U8, u8({2}, {3, 5}));
    sum.add(name[0] == 'a' ? "as" : "bs", F32, f32({}, {1}));
    sum.leave_out();
  }
  sum.add("ys", F32, f32({}, {0.5}));
  CHECK(numbers(sum.run("QLinearAdd")) == Doubles{12, 20});
  CHECK(numbers(sum.run("QLinearMul")) == Doubles{18, 50});
  Case one;
  one.add("a", U8, u8({2}, {3, 5}));
  one.add("as", F32, f32({}, {1}));
  one.leave_out();
  one.add("ys", F32, f32({}, {0.5}));
  CHECK(numbers(one.run("QLinearLeakyRelu")) == Doubles{6, 10});
  CHECK(numbers(one.run("QLinearSigmoid")) == Doubles{2, 2});
  CHECK(contains(one.import("QLinearSoftmax").messages, "input 4 is left out"));
  one.add("yz", U8, u8({}, {7}));
  CHECK(numbers(one.run("QLinearSoftmax")) == Doubles{7, 9});
  Case pool = one;
  pool.values[0] = u8({1, 1, 2}, {3, 5});
  pool.inputs[0] = value("a", U8, {1, 1, 2});
  CHECK(numbers(pool.run("QLinearAveragePool", {attribute_ints("kernel_shape", {2})})) == Doubles{15});
}

TEST_CASE("scales and tensors that are left out are named") {
  Case made;
  made.add("a", U8, u8({2}, {3, 5}));
  made.add("as", F32, f32({}, {1}));
  made.leave_out();
  CHECK(contains(made.import("QLinearSigmoid").messages, "input 3 is left out"));
  CHECK(contains(made.import("QLinearAdd").messages, "input 3 is left out"));
}

TEST_CASE("quantised tensors that are joined meet beside the axis") {
  Imported imported =
      import_node(node("QLinearConcat", {"s", "z", "x", "s", "z", "v", "s", "z"}, {"y"},
                       {attribute("axis", 0)}, kContrib),
                  {value("s", F32, {}), value("z", U8, {}), value("x", U8, {1, "n"}), value("v", U8, {1, 2})},
                  in_ranges({"n"}));
  INFO(imported.messages);
  REQUIRE(imported.model);
  LiteralRef one = f32({}, {1}), zero = u8({}, {0}), v = u8({1, 2}, {3, 4});
  CHECK(numbers(run(imported, {one, zero, u8({1, 2}, {1, 2}), v})[0]) == Doubles{1, 2, 3, 4});
  CHECK(ends_early(imported, {one, zero, u8({1, 3}, {1, 2, 3}), v}));
}

TEST_CASE("elements of two quantised tensors are chosen by what they stand for") {
  Case made;
  made.add("c", Bool, Literal::of(DType::Bool, {2}, Doubles{1, 0}));
  made.add("x", U8, u8({2}, {10, 20}));
  made.add("xs", F32, f32({}, {1}));
  made.add("xz", U8, u8({}, {4}));
  made.add("v", U8, u8({1}, {30}));
  made.add("vs", F32, f32({}, {2}));
  made.add("vz", U8, u8({}, {5}));
  made.add("ys", F32, f32({}, {0.5}));
  made.add("yz", U8, u8({}, {1}));
  CHECK(numbers(made.run("QLinearWhere")) == Doubles{13, 101});
}
