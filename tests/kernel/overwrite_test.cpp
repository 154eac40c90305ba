// Tests which kernels may write over memory that they read, in which pattern, and what the verifier says
// about promises that they do not keep.
#include "compiler/kernel/builder.h"

#include <catch2/catch.hpp>

#include <functional>

namespace firn::kernel {
namespace {

constexpr MachineType f32{Scalar::F32, 1}, f32x8{Scalar::F32, 8}, f16x8{Scalar::F16, 8};

// Buffer x (read) and y (written), both of 1024 elements.
Overwriting pattern_of(const std::function<void(Builder&, int x, int y)>& make, int64_t distance = 0,
                       Scalar read = Scalar::F32) {
  Kernel kernel;
  kernel.name = "k";
  Builder b(kernel);
  int x = b.add_parameter("x", read, 1024, false), y = b.add_parameter("y", Scalar::F32, 1024, true);
  make(b, x, y);
  if (Result result = verify(kernel); !result) FAIL(result.error().message);
  Overwriting pattern = may_overwrite(kernel, y, x, distance);
  if (pattern != Overwriting::None) {
    kernel.in_place = {{y, x, pattern, distance}};
    CHECK(verify(kernel));
  }
  CHECK(may_overwrite(kernel, x, y, -distance) == Overwriting::None); // x is not written
  return pattern;
}

void copy(Builder& b, int x, int y, const IntExpr& from, const IntExpr& to, MachineType type = f32x8) {
  b.store(b.load(type, x, from), y, to);
}

} // namespace

TEST_CASE("an element that is read only where it is written may be overwritten") {
  CHECK(pattern_of([](Builder& b, int x, int y) {
          b.loop(
              0, 100, 1, [&](const IntExpr& i) { copy(b, x, y, 8 * i, 8 * i); }, 4);
          copy(b, x, y, 800, 800, {Scalar::F32, 5});
        }) == Overwriting::Pointwise);
  // Rows of blocks, and the rest of a row in a vector of its own.
  CHECK(pattern_of([](Builder& b, int x, int y) {
          b.loop(0, 30, 1, [&](const IntExpr& row) {
            b.loop(0, 4, 1, [&](const IntExpr& v) { copy(b, x, y, 34 * row + 8 * v, 34 * row + 8 * v); });
            copy(b, x, y, 34 * row + 32, 34 * row + 32, {Scalar::F32, 2});
          });
        }) == Overwriting::Pointwise);
  // Columns outermost.
  CHECK(pattern_of([](Builder& b, int x, int y) {
          b.loop(0, 4, 1, [&](const IntExpr& v) {
            b.loop(0, 32, 1, [&](const IntExpr& row) { copy(b, x, y, 32 * row + 8 * v, 32 * row + 8 * v); });
          });
        }) == Overwriting::Pointwise);
}

TEST_CASE("iterations of the parallel loop own what they overwrite") {
  // A variable taken apart by divisions.
  CHECK(pattern_of([](Builder& b, int x, int y) {
          IntExpr p = b.set_parallel(30);
          IntExpr at = 192 * floor_mod(floor_div(p, 3), 5) + 64 * floor_mod(p, 3) + 8 * floor_div(p, 15);
          copy(b, x, y, at, at);
        }) == Overwriting::Pointwise);
  // Chunks of a long loop, the rest in the last one.
  CHECK(pattern_of([](Builder& b, int x, int y) {
          IntExpr p = b.set_parallel(4);
          b.loop(30 * p, min(30 * p + 30, 113), 1, [&](const IntExpr& v) { copy(b, x, y, 8 * v, 8 * v); });
          Register last = b.compare(OpKind::SCmp, Predicate::Eq, b.index(p), b.index(3));
          b.if_then_else(
              last,
              [&] {
                return copy(b, x, y, 904, 904, {Scalar::F32, 3}), std::vector<Register>{};
              },
              [] { return std::vector<Register>{}; });
        }) == Overwriting::Pointwise);
  // Iterations come in any order: none may read what another writes, not even an earlier one.
  CHECK(pattern_of([](Builder& b, int x, int y) {
          IntExpr p = b.set_parallel(30);
          copy(b, x, y, 8 * p + 8, 8 * p);
        }) == Overwriting::None);
}

TEST_CASE("a row that is read as a whole before it is written may be overwritten") {
  auto softmax = [](bool reads_again) {
    return pattern_of([&](Builder& b, int x, int y) {
      b.loop(0, 16, 1, [&](const IntExpr& row) {
        b.loop(0, 8, 1, [&](const IntExpr& v) { b.load(f32x8, x, 64 * row + 8 * v); });
        b.loop(0, 8, 1, [&](const IntExpr& v) { copy(b, x, y, 64 * row + 8 * v, 64 * row + 8 * v); });
        b.loop(0, 8, 1, [&](const IntExpr& v) {
          copy(b, reads_again ? x : y, y, 64 * row + 8 * v, 64 * row + 8 * v);
        });
      });
    });
  };
  CHECK(softmax(false) == Overwriting::RowWise);
  CHECK(softmax(true) == Overwriting::None);
}

TEST_CASE("rows whose elements lie apart are told from each other") {
  CHECK(pattern_of([](Builder& b, int x, int y) {
          b.loop(0, 4, 1, [&](const IntExpr& column) {
            b.loop(0, 32, 1, [&](const IntExpr& k) { b.load(f32x8, x, 32 * k + 8 * column); });
            b.loop(0, 32, 1,
                   [&](const IntExpr& k) { b.store(b.constant(f32x8, 0), y, 32 * k + 8 * column); });
          });
        }) == Overwriting::RowWise);
}

TEST_CASE("what every row reads is not overwritten by the first") {
  CHECK(pattern_of([](Builder& b, int x, int y) {
          b.loop(0, 16, 1, [&](const IntExpr& row) {
            b.loop(0, 8, 1, [&](const IntExpr& v) { copy(b, x, y, 8 * v, 64 * row + 8 * v); });
          });
        }) == Overwriting::None);
  // An outer loop repeats the same addresses, as when a reduction comes in parts.
  CHECK(pattern_of([](Builder& b, int x, int y) {
          b.loop(0, 2, 1, [&](const IntExpr&) {
            b.loop(0, 8, 1, [&](const IntExpr& v) { copy(b, x, y, 8 * v, 8 * v); });
          });
        }) == Overwriting::None);
}

TEST_CASE("moves towards the start may overlap, moves towards the end may not") {
  auto move = [](int64_t from, int64_t to, int64_t distance = 0) {
    return pattern_of(
        [&](Builder& b, int x, int y) {
          b.loop(0, 50, 1, [&](const IntExpr& v) { copy(b, x, y, 8 * v + from, 8 * v + to); });
        },
        distance);
  };
  CHECK(move(5, 0) == Overwriting::Sliding);
  CHECK(move(0, 5) == Overwriting::None);
  CHECK(move(0, 0, 20) == Overwriting::Sliding);
  CHECK(move(0, 0, -20) == Overwriting::None);
  CHECK(move(0, 5, 20) == Overwriting::Pointwise);
  CHECK(move(0, 500) == Overwriting::Pointwise); // never the same
}

TEST_CASE("elements of another size lie elsewhere") {
  auto widen = [](int64_t elements) {
    return pattern_of(
        [&](Builder& b, int x, int y) {
          b.loop(0, elements / 8, 1, [&](const IntExpr& v) {
            b.store(b.cast(OpKind::FExt, b.load(f16x8, x, 8 * v), Scalar::F32), y, 8 * v);
          });
        },
        0, Scalar::F16);
  };
  CHECK(widen(64) == Overwriting::None);
  CHECK(widen(8) == Overwriting::RowWise);
}

TEST_CASE("a last vector that overlaps the one before reads what that wrote") {
  CHECK(pattern_of([](Builder& b, int x, int y) {
          b.loop(0, 10, 1, [&](const IntExpr& v) { copy(b, x, y, 8 * v, 8 * v); });
          copy(b, x, y, 75, 75);
        }) == Overwriting::None);
}

TEST_CASE("gathers, runtime calls and whiles may read anything at any time") {
  auto gathers = [](bool first) {
    return pattern_of([&](Builder& b, int x, int y) {
      Register offsets = b.constant_int({Scalar::I32, 8}, 3);
      if (!first) b.store(b.constant(f32x8, 0), y, 0);
      Register gathered = b.gather(f32x8, x, 0, offsets);
      b.store(gathered, y, 8);
    });
  };
  CHECK(gathers(true) == Overwriting::RowWise);
  CHECK(gathers(false) == Overwriting::None);
  CHECK(pattern_of([](Builder& b, int x, int y) {
          Register start = b.load(f32, x, 0);
          b.while_loop(
              {start},
              [&](const std::vector<Register>& v) {
                return b.compare(OpKind::FCmp, Predicate::Ge, v[0], b.constant(f32, 1));
              },
              [&](const std::vector<Register>& v) {
                b.store(v[0], y, 0);
                return std::vector<Register>{b.load(f32, x, 0)};
              });
        }) == Overwriting::None);
  CHECK(pattern_of([](Builder& b, int x, int y) {
          auto call = std::make_unique<Op>();
          call->kind = OpKind::CallRuntime;
          call->callee = "firn_rt2_sort";
          call->buffers = {x, y};
          b.kernel().body.ops.push_back(std::move(call));
        }) == Overwriting::None);
}

TEST_CASE("of two branches only one runs") {
  auto branches = [](bool in_order) {
    return pattern_of([&](Builder& b, int x, int y) {
      Register holds = b.compare(OpKind::FCmp, Predicate::Gt, b.load(f32, x, 100), b.constant(f32, 0));
      auto write = [&] { return b.store(b.constant(f32, 1), y, 0), std::vector<Register>{}; };
      auto read = [&] { return b.load(f32, x, 0), std::vector<Register>{}; };
      b.if_then_else(holds, write, read);
      if (!in_order) read();
    });
  };
  CHECK(branches(true) != Overwriting::None);
  CHECK(branches(false) == Overwriting::None);
}

TEST_CASE("masked accesses count as whole ones") {
  CHECK(pattern_of([](Builder& b, int x, int y) {
          b.loop(0, 10, 1, [&](const IntExpr& v) {
            Register mask = b.lane_mask(8, 75 - 8 * v);
            b.store_masked(b.load_masked(f32x8, x, 8 * v, mask), y, 8 * v, mask);
          });
        }) == Overwriting::Pointwise);
}

TEST_CASE("promises that a kernel does not keep are refused") {
  auto verify_text = [](const std::string& in_place, const std::string& call) {
    std::string text =
        "program \"p\" arena 4096 lower_bound 0 weights 0 {\nbuffer \"a\" arena bytes 1024 align 64\n"
        "buffer \"b\" arena bytes 1024 align 64\n" +
        call +
        "}\nkernel \"k\" {\n  parameter \"x\" f32[64] align 4\n  parameter \"y\" f32[64] align 4 written\n" +
        in_place +
        "for from (0) to (8) as i [0, 7] () {\n%0: f32x8 = load b0[8*i + 8]\nstore %0 b1[8*i]\nyield\n}\n}\n";
    auto parsed = parse_program("t", text);
    if (!parsed) return "parse: " + parsed.error().message;
    CHECK(print_program(*parsed).find(in_place) != std::string::npos);
    Result result = verify(*parsed);
    return result ? std::string("good") : result.error().message;
  };
  std::string calls = "call 0 (0, 1)\n";
  CHECK(verify_text("", calls) == "good");
  CHECK(verify_text("  in_place b1 over b0 sliding\n", calls) == "good");
  CHECK(verify_text("  in_place b1 over b0 pointwise behind -32\n", calls) == "good");
  auto rejects = [&](const std::string& in_place, const std::string& call, const std::string& message) {
    std::string got = verify_text(in_place, call);
    INFO(got);
    CHECK(got.find(message) != std::string::npos);
  };
  rejects("  in_place b1 over b0 pointwise\n", calls, "not written over 'x' pointwise: it is sliding");
  rejects("  in_place b1 over b0 row_wise\n", calls, "not written over 'x' row_wise: it is sliding");
  rejects("  in_place b1 over b0 sliding behind -64\n", calls, "what is read may be overwritten before");
  rejects("  in_place b0 over b1 sliding\n", calls, "what is read may be overwritten before");
  rejects("  in_place b1 over b2 sliding\n", calls, "no parameter");
  rejects("  in_place b1 over b0 backwards\n", calls, "expected pointwise, row_wise or sliding");
  // Calls may share memory only where the kernel promises it.
  rejects("", "call 0 (0, 0)\n", "writes 'y' over 'x', which it does not promise to do in place");
  CHECK(verify_text("  in_place b1 over b0 sliding\n", "call 0 (0, 0)\n") == "good");
  rejects("  in_place b1 over b0 sliding\n", "call 0 (0, 0 + 4)\n", "does not promise");
  CHECK(verify_text("", "call 0 (0, 0 + 256)\n") == "good");
}

} // namespace firn::kernel
