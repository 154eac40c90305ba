// Places that are decided before kernels are made: views, results that are outputs, parts of concatenations,
// rolling windows.
#include "compiler/memory/placement.h"

#include "compiler/graph/hlo_text.h"
#include "compiler/plan/rows/plan.h"

#include <catch2/catch.hpp>

namespace firn::memory {
namespace {

class PlacedModule {
public:
  PlacedModule(const std::string& parameters, const std::string& results, const std::string& body) {
    auto module = parse_module(
        "m", "module @m {\nfunc @main(" + parameters + ") -> (" + results + ") {\n" + body + "\n}\n}\n", {});
    if (!module) FAIL(module.error().message);
    module_ = std::move(*module);
  }

  Places places;
  plan::KernelPlans plans;

  Region& body() { return module_->main().body(); }
  Instruction& at(const std::string& name) {
    Instruction* found = find(body(), name);
    REQUIRE(found);
    return *found;
  }
  Value value(const std::string& name) { return at(name).result(); }
  void place_views() { memory::place_views(places, plans, body()); }
  void place_concatenations() { memory::place_concatenations(places, plans, body()); }
  bool claim(Value value, int buffer) { return claim_place(places, value, body(), {buffer, 0}); }
  // The place of `inner` if it is seen as a part of `whole`; -1: it is not.
  int64_t offset_in(const std::string& whole, const std::string& inner) {
    auto [root, offset] = places.root_of(value(inner));
    return root == value(whole) ? offset : -1;
  }

private:
  static Instruction* find(Region& region, const std::string& name) {
    for (const auto& instruction : region.instructions()) {
      if (instruction->name() == name) return instruction.get();
      for (int i = 0; i < instruction->num_regions(); ++i)
        if (Instruction* found = find(instruction->region(i), name)) return found;
    }
    return nullptr;
  }

  std::unique_ptr<Module> module_;
};

} // namespace

TEST_CASE("reshapes and contiguous slices are views of what they begin with", "[memory]") {
  PlacedModule m("%x: f32[4,6]", "f32[2,6], f32[4,2], f32[12]", R"(
    %n = negate %x : f32[4,6]
    %rows = slice %n {starts = [1, 0], limits = [3, 6], strides = [1, 1]} : f32[2,6]
    %columns = slice %n {starts = [0, 2], limits = [4, 4], strides = [1, 1]} : f32[4,2]
    %flat = reshape %rows : f32[12]
    return %rows, %columns, %flat)");
  m.place_views();
  CHECK(m.offset_in("n", "rows") == 24);
  CHECK(m.offset_in("n", "flat") == 24);
  CHECK(m.places.is_view_of_operand(m.at("rows")));
  CHECK(m.places.is_view_of_operand(m.at("flat")));
  CHECK_FALSE(m.places.is_placed(m.value("columns"))); // its rows lie apart
  CHECK_FALSE(m.places.is_placed(m.value("n")));
}

TEST_CASE("a composite without a kernel is a view of its body", "[memory]") {
  const char* text = R"(
    %n = negate %x : f32[8]
    %c = composite %n {name = softmax, dim = 0} region (%p: f32[8]) {
      %e = exponential %p : f32[8]
      return %e
    } : f32[8]
    return %c)";
  PlacedModule inlined("%x: f32[8]", "f32[8]", text);
  inlined.place_views();
  CHECK(inlined.offset_in("e", "c") == 0);
  CHECK(inlined.places.root_of(inlined.at("c").region().parameter(0)).first == inlined.value("n"));
  CHECK(inlined.claim(inlined.value("c"), 3));
  CHECK(inlined.places.find(inlined.value("e")) == BufferSlice{3, 0});

  PlacedModule planned("%x: f32[8]", "f32[8]", text);
  planned.plans.set(planned.at("c"), plan::RowsPlan{});
  planned.place_views();
  CHECK_FALSE(planned.places.is_placed(planned.value("c")));
  CHECK(planned.claim(planned.value("c"), 3));
  CHECK(planned.places.find(planned.value("c")) == BufferSlice{3, 0});
}

TEST_CASE("a result takes the memory of its output, once", "[memory]") {
  PlacedModule m("%x: f32[4,2]", "f32[8], f32[4,2], f32[4,2], f32[2], f32[4,2], f32[4,2]", R"(
    %n = negate %x : f32[4,2]
    %flat = reshape %n : f32[8]
    %half = slice %n {starts = [0, 0], limits = [1, 2], strides = [1, 1]} : f32[1,2]
    %part = reshape %half : f32[2]
    %k = constant [1, 2, 3, 4, 5, 6, 7, 8] : f32[4,2]
    return %flat, %n, %x, %part, %k, %n)");
  m.place_views();
  CHECK(m.claim(m.value("flat"), 10));
  CHECK(m.places.find(m.value("n")) == BufferSlice{10, 0});
  CHECK_FALSE(m.claim(m.value("n"), 11));          // it lies in the first output
  CHECK_FALSE(m.claim(m.body().parameter(0), 12)); // an input
  CHECK_FALSE(m.claim(m.value("part"), 13));       // more than the output is computed
  CHECK_FALSE(m.claim(m.value("k"), 14));          // nothing computes it
  CHECK_FALSE(m.places.find(m.body().parameter(0)));
}

TEST_CASE("values of a branch take no memory of another region's values", "[memory]") {
  PlacedModule m("%x: f32[4], %c: bool[]", "f32[4]", R"(
    %n = negate %x : f32[4]
    %r = if %c region() {
      %t = add %n, %x : f32[4]
      return %t
    }, region() {
      return %n
    } : f32[4]
    return %r)");
  Region& then = m.at("r").region(0);
  place_views(m.places, m.plans, then);
  CHECK_FALSE(claim_place(m.places, m.value("n"), m.at("r").region(1), {1, 0}));
  CHECK_FALSE(claim_place(m.places, m.value("t"), m.body(), {1, 0}));
  CHECK(claim_place(m.places, m.value("t"), then, {1, 0}));
}

TEST_CASE("operands of a concatenation along the outer dim are computed in it", "[memory]") {
  PlacedModule m("%x: f32[2,3], %y: f32[1,3]", "f32[7,3], f32[3,3]", R"(
    %a = negate %x : f32[2,3]
    %b = negate %y : f32[1,3]
    %inner = concatenate %a, %b {dim = 0} : f32[3,3]
    %k = constant [1, 2, 3, 4, 5, 6] : f32[2,3]
    %out = add %x, %x : f32[2,3]
    %all = concatenate %inner, %x, %out {dim = 0} : f32[7,3]
    return %all, %inner)");
  m.place_views();
  m.place_concatenations();
  CHECK(m.offset_in("all", "inner") == 0);
  CHECK(m.offset_in("all", "a") == 0);
  CHECK(m.offset_in("all", "b") == 24);
  CHECK(m.offset_in("all", "out") == 60);
  CHECK(m.places.root_of(m.body().parameter(0)).first == m.body().parameter(0)); // inputs are copied
  CHECK_FALSE(m.places.is_view_of_operand(m.at("a")));                           // it is computed
}

TEST_CASE("an operand that is an output, or whose rows lie apart, is copied", "[memory]") {
  PlacedModule m("%x: f32[2,3]", "f32[4,3], f32[2,6], f32[2,3]", R"(
    %a = negate %x : f32[2,3]
    %b = exponential %x : f32[2,3]
    %c = abs %x : f32[2,3]
    %rows = concatenate %a, %b {dim = 0} : f32[4,3]
    %columns = concatenate %b, %c {dim = 1} : f32[2,6]
    return %rows, %columns, %a)");
  m.place_views();
  CHECK(m.claim(m.value("a"), 5));
  m.place_concatenations();
  CHECK(m.places.find(m.value("a")) == BufferSlice{5, 0});
  CHECK(m.offset_in("rows", "b") == 24);
  CHECK_FALSE(m.places.is_placed(m.value("c")));
}

TEST_CASE("a concatenation of all parts of another is seen as that one", "[memory]") {
  PlacedModule m("%x: f32[2,3]", "f32[4,3], f32[4,3]", R"(
    %a = negate %x : f32[2,3]
    %b = exponential %x : f32[2,3]
    %first = concatenate %a, %b {dim = 0} : f32[4,3]
    %second = concatenate %a, %b {dim = 0} : f32[4,3]
    return %first, %second)");
  m.place_views();
  m.place_concatenations();
  CHECK(m.offset_in("second", "first") == 0);
  CHECK(m.offset_in("second", "b") == 24);
}

TEST_CASE("a window that rolls over a state reads what it keeps where that lies", "[memory]") {
  auto rolling = [](const std::string& kept, const std::string& rest) {
    return PlacedModule("%s: f32[6,2], %x: f32[2,2]", "f32[6,2]",
                        R"(
    %old = slice %s {starts = )" +
                            kept + R"(, strides = [1, 1]} : )" + rest + R"(
    %new = negate %x : f32[2,2]
    %next = concatenate %old, %new {dim = 0} : f32[6,2]
    return %next)");
  };
  PlacedModule m = rolling("[2, 0], limits = [6, 2]", "f32[4,2]");
  place_rolling_window(m.places, m.value("next"), m.body().parameter(0));
  CHECK(m.places.is_rolling(m.at("next")));
  CHECK(m.places.is_read_in_place(m.at("old")));
  m.place_concatenations();
  CHECK_FALSE(m.places.is_placed(m.value("new"))); // it is written behind the move

  PlacedModule other = rolling("[2, 0], limits = [6, 2]", "f32[4,2]");
  place_rolling_window(other.places, other.value("next"), other.body().parameter(1));
  CHECK_FALSE(other.places.is_rolling(other.at("next")));

  PlacedModule viewed = rolling("[2, 0], limits = [6, 2]", "f32[4,2]");
  viewed.place_views();
  place_rolling_window(viewed.places, viewed.value("next"), viewed.body().parameter(0));
  CHECK(viewed.places.is_rolling(viewed.at("next")));
  CHECK_FALSE(viewed.places.is_read_in_place(viewed.at("old"))); // a view is not computed in any case
}

TEST_CASE("a value is placed once", "[memory]") {
  PlacedModule m("%x: f32[2]", "f32[2]", "%n = negate %x : f32[2]\nreturn %n");
  m.places.set_place(m.value("n"), {1, 64});
  CHECK(m.places.is_placed(m.value("n")));
  CHECK(m.places.find(m.value("n")) == BufferSlice{1, 64});
  CHECK_FALSE(m.claim(m.value("n"), 2));
  m.places.set_view(m.body().parameter(0), m.value("n"), 8);
  CHECK(m.places.root_of(m.body().parameter(0)) == std::pair<Value, int64_t>(m.value("n"), 8));
}

} // namespace firn::memory
