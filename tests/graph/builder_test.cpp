// The builder: which instructions it makes, and which it leaves out because they are already there.
#include "compiler/graph/builder.h"

#include "compiler/graph/verify.h"
#include "tests/graph/text_files.h"

#include <cmath>

namespace firn {
namespace {

// A function to build in, whose results are the values built.
struct Scene {
  Scene() : module("m"), body(module.add_function("main").body()), builder(body) {}
  Value input(DType dtype, std::vector<int64_t> dims) {
    return body.add_parameter(Type::tensor_of(dtype, dims))->result();
  }
  void require_valid() {
    Result verified = verify(module);
    if (!verified) FAIL(verified.error().message);
  }
  Module module;
  Region& body;
  GraphBuilder builder;
};

TEST_CASE("shapes broadcast under numpy's rule") {
  auto dims = [](std::vector<Dim> a, std::vector<Dim> b) { return broadcast_dims(a, b); };
  IntExpr n = IntExpr::symbol(std::make_shared<Symbol>(Symbol{"n", 1, 8}));
  CHECK(dims({2, 1, 4}, {3, 1}) == std::vector<Dim>{2, 3, 4});
  CHECK(dims({}, {5}) == std::vector<Dim>{5});
  CHECK(dims({Dim(n), 1}, {Dim(n), 3}) == std::vector<Dim>{Dim(n), 3});
  CHECK(dims({1}, {Dim(n)}) == std::vector<Dim>{Dim(n)});
  CHECK(dims({1}, {0}) == std::vector<Dim>{0});
  CHECK_FALSE(dims({2}, {3}));
  CHECK_FALSE(dims({2}, {Dim(n)}));
}

TEST_CASE("binary ops broadcast their operands") {
  Scene scene;
  Value x = scene.input(DType::F32, {2, 3, 4}), y = scene.input(DType::F32, {3, 1});
  Value sum = scene.builder.binary(Opcode::Add, x, y);
  CHECK(sum.type() == x.type());
  CHECK(sum.def->operand(0) == x);
  CHECK(sum.def->operand(1).def->is(Opcode::BroadcastInDim));
  Value chosen = scene.builder.select(scene.builder.compare("lt", x, y), x, scene.builder.splat_like(x, 2));
  CHECK(chosen.type() == x.type());
  scene.require_valid();
}

TEST_CASE("what would change nothing is the operand itself") {
  Scene scene;
  Value x = scene.input(DType::F32, {2, 3});
  CHECK(scene.builder.convert(x, DType::F32) == x);
  CHECK(scene.builder.reshape(x, {2, 3}) == x);
  CHECK(scene.builder.transpose(x, {0, 1}) == x);
  CHECK(scene.builder.broadcast_to(x, {2, 3}) == x);
  CHECK(scene.builder.concatenate({x}, 0) == x);
}

TEST_CASE("reductions get a region of one op and its identity") {
  Scene scene;
  Value x = scene.input(DType::F32, {2, 3, 4});
  Value kept = scene.builder.reduce(Opcode::Maximum, x, {0, 2}, /*keep_dims=*/true);
  Value dropped = scene.builder.reduce(Opcode::Add, x, {1}, /*keep_dims=*/false);
  CHECK(kept.type() == Type::tensor_of(DType::F32, {1, 3, 1}));
  CHECK(dropped.type() == Type::tensor_of(DType::F32, {2, 4}));
  CHECK(simple_reducer(*dropped.def) == Opcode::Add);
  CHECK(simple_reducer(*kept.def->operand(0).def) == Opcode::Maximum);
  Window window{{{1}, {3, 2, 1, 1, 1, 1}, {2}}};
  Value pooled = scene.builder.reduce_window(Opcode::Maximum, x, window);
  CHECK(pooled.type() == Type::tensor_of(DType::F32, {2, 2, 3}));
  CHECK(simple_reducer(*pooled.def) == Opcode::Maximum);
  scene.require_valid();
}

TEST_CASE("a reducer with swapped operands is simple only if it commutes") {
  auto reducer = [](const char* op) {
    auto module =
        parse_or_fail("m", main_text("%x: f32[2], %z: f32[]", "f32[]",
                                     "%r = reduce %x, %z {dims = [0]} region(%a: f32[], %b: f32[]) { %s = " +
                                         std::string(op) + " %b, %a : f32[] return %s } : f32[] return %r"));
    return simple_reducer(*module->main().body().results()[0].def);
  };
  CHECK(reducer("add") == Opcode::Add);
  CHECK_FALSE(reducer("subtract"));
}

TEST_CASE("identity elements leave every value as it is") {
  CHECK(reducer_identity(Opcode::Maximum, DType::F32)->get_double(0) == -INFINITY);
  CHECK(reducer_identity(Opcode::Minimum, DType::F16)->get_double(0) == INFINITY);
  CHECK(reducer_identity(Opcode::Maximum, DType::I8)->get_int(0) == -128);
  CHECK(reducer_identity(Opcode::Minimum, DType::I8)->get_int(0) == 127);
  CHECK(reducer_identity(Opcode::Maximum, DType::U16)->get_int(0) == 0);
  CHECK(reducer_identity(Opcode::Minimum, DType::U64)->get_int(0) == -1);
  CHECK(reducer_identity(Opcode::Minimum, DType::I64)->get_int(0) == INT64_MAX);
  CHECK(reducer_identity(Opcode::Multiply, DType::BF16)->get_double(0) == 1);
  CHECK(reducer_identity(Opcode::And, DType::I32)->get_int(0) == -1);
  CHECK(reducer_identity(Opcode::And, DType::Bool)->get_int(0) == 1);
  CHECK(reducer_identity(Opcode::Or, DType::Bool)->get_int(0) == 0);
  // The formats without infinity take their extremes.
  CHECK(reducer_identity(Opcode::Maximum, DType::F8E4M3FN)->get_double(0) == -448);
}

TEST_CASE("new instructions stand before the given one and take its location") {
  Scene scene;
  Value x = scene.input(DType::F32, {2});
  scene.builder.set_location("node");
  Value last = scene.builder.unary(Opcode::Negate, x);
  GraphBuilder before(scene.body, last.def);
  Value first = before.unary(Opcode::Abs, x);
  CHECK(first.def->location() == "node");
  CHECK(scene.body.snapshot()[1] == first.def);
}

} // namespace
} // namespace firn
