// Indices that are checked: a run ends with a status at the step that meets one out of range, and nothing
// outside of memory is touched either way.
#include "compiler/kernel/passes/pass.h"
#include "compiler/memory/arena.h"
#include "include/firn/abi.h"
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"
#include "tests/lower/plan_and_lower.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>

using namespace firn;
using namespace firn::test;

namespace {

// @main over inputs of indices (i64) and data (f32), in that order.
class CheckedModel {
public:
  CheckedModel(const std::string& text, bool checks, int threads = 1) {
    auto module = parse_module("test.hlo", text);
    if (!module) FAIL(module.error().message);
    Machine target = host_target();
    auto program =
        firn::test::plan_and_lower(**module, {target, {.threads = threads, .check_indices = checks}});
    if (!program) FAIL(program.error().message);
    memory::place_constants(*program);
    memory::plan_arena(*program);
    kernel::make_entry(*program, kernel::KernelPassOptions());
    if (Result valid = kernel::verify(*program); !valid)
      FAIL(valid.error().message << kernel::print_program(*program));
    auto again = kernel::parse_program("again.kir", kernel::print_program(*program));
    if (!again) FAIL(again.error().message);
    CHECK(kernel::print_program(*again) == kernel::print_program(*program));
    has_status =
        std::any_of(program->buffers.begin(), program->buffers.end(),
                    [](const kernel::Buffer& buffer) { return buffer.space == kernel::Space::Status; });
    arena_.assign(static_cast<size_t>(program->arena_bytes) + 64, 0xa5);
    object_ = std::make_unique<LoadedObject>(*program, options_for(target));
  }

  int run(const std::vector<int64_t>& indices, const std::vector<float>& data, std::vector<float>& out) {
    auto at = reinterpret_cast<uintptr_t>(arena_.data());
    return object_->run({indices.data(), data.data()}, {out.data()}, arena_.data() + (64 - at % 64) % 64);
  }

  bool has_status = false;

private:
  std::vector<unsigned char> arena_;
  std::unique_ptr<LoadedObject> object_;
};

constexpr int kOk = FIRN_STATUS_OK, kRange = FIRN_STATUS_OUT_OF_RANGE;

const char* const kGather = R"(module @m {
  func @main(%i: i64[3], %x: f32[5,40]) -> (f32[3,40]) {
    %y = gather %x, %i {axis = 0} : f32[3,40]
    return %y
  }
})";

} // namespace

TEST_CASE("an index out of range ends a checked run", "[lower]") {
  CheckedModel checked(kGather, true), clamped(kGather, false);
  CHECK(checked.has_status);
  CHECK_FALSE(clamped.has_status);
  std::vector<float> x(200), y(120);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (const std::vector<int64_t>& good : {std::vector<int64_t>{0, 4, 2}, {-5, -1, 3}}) {
    CHECK(checked.run(good, x, y) == kOk);
    for (size_t row = 0; row < 3; ++row)
      for (size_t column : {size_t{0}, size_t{39}})
        CHECK(y[row * 40 + column] ==
              x[static_cast<size_t>(good[row] < 0 ? good[row] + 5 : good[row]) * 40 + column]);
  }
  for (int64_t wrong : {int64_t{5}, int64_t{-6}, INT64_MAX, INT64_MIN})
    for (size_t place = 0; place < 3; ++place) {
      std::vector<int64_t> indices{1, 1, 1};
      indices[place] = wrong;
      CHECK(checked.run(indices, x, y) == kRange);
      CHECK(clamped.run(indices, x, y) == kOk);
      CHECK(y[place * 40] == (wrong < 0 ? 0.0f : 160.0f));
    }
  CHECK(checked.run({0, 1, 2}, x, y) == kOk); // a failed run does not affect the next one
}

TEST_CASE("an index out of range is clamped in its own lane", "[lower]") {
  for (const char* dtype : {"i64", "i32"}) {
    std::string type = std::string(dtype) + "[11]";
    CheckedModel model(
        "module @m { func @main(%i: i64[11], %x: f32[2,5]) -> (f32[2,11]) { %c = convert %i {to = " +
            std::string(dtype) + "} : " + type + " %j = copy %c : " + type +
            " %y = gather %x, %j {axis = 1} : f32[2,11] return %y } }",
        false);
    std::vector<int64_t> good(11, 2);
    for (int64_t wrong : {int64_t{5}, int64_t{-6}, int64_t{INT32_MAX}, int64_t{INT32_MIN}, INT64_MAX,
                          INT64_MIN, int64_t{1} << 32, (int64_t{1} << 32) + 3, -(int64_t{1} << 32) - 1})
      for (size_t lane = 0; lane < 11; ++lane) {
        std::vector<int64_t> indices = good;
        indices[lane] = wrong;
        std::vector<float> x(10), y(22);
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
        CHECK(model.run(indices, x, y) == kOk);
        int64_t seen = std::string(dtype) == "i32" ? static_cast<int32_t>(wrong) : wrong;
        int64_t place = std::clamp<int64_t>(seen < 0 ? seen + 5 : seen, 0, 4);
        for (size_t k = 0; k < 11; ++k)
          for (size_t row : {0u, 1u})
            CHECK(y[row * 11 + k] == x[row * 5 + static_cast<size_t>(k == lane ? place : 2)]);
      }
  }
}

TEST_CASE("every op with indices checks them", "[lower]") {
  struct Case {
    const char* op;
    std::vector<int64_t> good, wrong;
  };
  for (const Case& c :
       {Case{"gather_elements %x, %i2 {axis = 1} : f32[2,3]", {0, 5, -6, 1, 2, 3}, {0, 6, 0, 0, 0, 0}},
        Case{"gather_nd %x, %i3 : f32[3]", {0, 5, 1, -6, -2, 3}, {0, 0, 2, 0, 0, 0}},
        Case{"scatter_elements %x, %i2, %u {axis = 1} : f32[2,6]", {0, 5, -6, 1, 2, 3}, {0, 0, 0, 0, 0, -7}},
        Case{"scatter_nd %x, %i3, %v : f32[2,6]", {0, 5, 1, -6, -2, 3}, {0, 0, 0, 0, 0, 6}}}) {
    std::string op = c.op, type = op.substr(op.rfind(": ") + 2);
    INFO(op);
    CheckedModel model(
        "module @m {\n  func @main(%i: i64[6], %x: f32[2,6]) -> (" + type +
            ") {\n    %i2 = reshape %i : i64[2,3]\n    %i3 = reshape %i : i64[3,2]\n    %u = constant "
            "[1, 2, 3, 4, 5, 6] : f32[2,3]\n    %v = constant [1, 2, 3] : f32[3]\n    %y = " +
            op + "\n    return %y\n  }\n}\n",
        true);
    std::vector<float> x(12, 1.0f), y(12);
    CHECK(model.run(c.good, x, y) == kOk);
    CHECK(model.run(c.wrong, x, y) == kRange);
  }
}

TEST_CASE("of a tensor without elements every index is out of range", "[lower]") {
  for (std::string op :
       {"gather %x, %i {axis = 0}", "gather_elements %x, %i2 {axis = 0}", "gather_nd %x, %i3"}) {
    INFO(op);
    std::string text = "module @m {\n  func @main(%i: i64[2], %x: f32[0,2]) -> (f32[2,2]) {\n    %i3 = "
                       "reshape %i : i64[2,1]\n    %i2 = broadcast_in_dim %i "
                       "{dims = [0]} : i64[2,2]\n    %y = " +
                       op + " : f32[2,2]\n    return %y\n  }\n}\n";
    CheckedModel checked(text, true), clamped(text, false);
    std::vector<float> x(1, 5.0f), y(4, 5.0f);
    CHECK(checked.run({0, 0}, x, y) == kRange);
    CHECK(clamped.run({0, 0}, x, y) == kOk);
    CHECK(y == std::vector<float>(4, 0.0f));
  }
}

TEST_CASE("a loop ends at the iteration that fails", "[lower]") {
  // The sum of x[i[0]], x[i[1]], ...
  CheckedModel model(R"(module @m {
  func @main(%i: i64[4], %x: f32[5]) -> (f32[]) {
    %zero = constant [0] : i64[]
    %none = constant [0] : f32[]
    %four = constant [4] : i64[]
    %one = constant [1] : i64[]
    %w:2 = while %zero, %none region (%k: i64[], %t: f32[]) {
      %c = compare %k, %four {direction = lt} : bool[]
      return %c
    }, region (%k: i64[], %t: f32[]) {
      %at = gather %i, %k {axis = 0} : i64[]
      %v = gather %x, %at {axis = 0} : f32[]
      %t1 = add %t, %v : f32[]
      %k1 = add %k, %one : i64[]
      return %k1, %t1
    } : (i64[], f32[])
    return %w#1
  }
})",
                     true);
  std::vector<float> x{1, 2, 4, 8, 16}, sum(1);
  CHECK(model.run({0, 1, 2, 3}, x, sum) == kOk);
  CHECK(sum[0] == 15);
  CHECK(model.run({0, 1, 9, 3}, x, sum) == kRange);
  CHECK(model.run({4, 4, 4, -1}, x, sum) == kOk);
  CHECK(sum[0] == 64);
}

TEST_CASE("the condition of a branch that cannot be computed ends a run with a detail of its own",
          "[lower]") {
  for (bool checks : {false, true}) {
    CheckedModel model(R"(module @m { func @main(%i: i64[1], %x: f32[2]) -> (f32[2]) {
      %c = reshape %i : i64[]
      %one = constant [1] : i64[]
      %k = clamp %one, %c, %one {branch = true, checked = true} : i64[]
      %y = negate %x : f32[2]
      return %y } })",
                       checks);
    std::vector<float> x{1, 2}, y(2);
    CHECK(model.run({1}, x, y) == kOk);
    CHECK(y == std::vector<float>{-1, -2});
    CHECK(model.run({0}, x, y) == (kRange | 5 << 8));
    CHECK(model.run({1}, x, y) == kOk); // the failed run does not affect this one
  }
}
