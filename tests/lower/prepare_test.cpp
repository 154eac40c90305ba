// @prepare: constants as the object would embed them, as the evaluator makes them from the model's own, and
// as the compiled program does, in every packing.
#include "compiler/lower/prepare.h"

#include "compiler/graph/composites.h"
#include "compiler/graph/evaluate.h"
#include "compiler/graph/packing.h"
#include "compiler/kernel/passes/prepare_program.h"
#include "compiler/memory/arena.h"
#include "compiler/passes/pass.h"
#include "tests/codegen/model_object.h"
#include "tests/lower/plan_and_lower.h"
#include "tests/lower/typed_cases.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>

using namespace firn;
using namespace firn::test;

namespace {

std::vector<std::byte> embedded(const kernel::Constant& constant) {
  std::vector<std::byte> bytes(
      static_cast<size_t>(constant.packing.packed_elements * constant.packing.element_bytes));
  kernel::write_constant(constant, bytes);
  return bytes;
}

// Requires equal bits, or differences of at most `tolerance` times the largest number.
void check_equal(const kernel::Constant& constant, const void* got, float tolerance = 0) {
  INFO(constant.source.name << ": " << to_string(constant.packing));
  std::vector<std::byte> want = embedded(constant);
  if (tolerance == 0) {
    CHECK(std::memcmp(got, want.data(), want.size()) == 0);
    return;
  }
  auto *values = static_cast<const float*>(got), *wanted = reinterpret_cast<const float*>(want.data());
  float largest = 0, error = 0;
  for (size_t i = 0; i < want.size() / 4; ++i) {
    largest = std::max(largest, std::abs(wanted[i]));
    error = std::max(error, std::isfinite(values[i]) ? std::abs(values[i] - wanted[i]) : INFINITY);
  }
  CHECK(error <= tolerance * largest);
}

std::vector<const kernel::Constant*> constants_with_bytes(const kernel::Program& program) {
  std::vector<const kernel::Constant*> constants;
  for (const kernel::Constant& constant : program.constants)
    if (constant.packing.packed_elements > 0) constants.push_back(&constant);
  return constants;
}

void check_evaluated(const kernel::Program& program, const Module& module) {
  std::vector<RuntimeValue> arguments;
  std::vector<kernel::ConstantSource> sources = lower::prepare_sources(program);
  for (size_t i = 0; i < sources.size(); ++i) {
    const Type& type = module.main().body().parameters()[i]->type();
    auto literal = std::make_shared<Literal>(type.dtype, type.static_dims());
    REQUIRE(literal->bytes().size() == sources[i].bytes.size());
    std::memcpy(literal->mutable_bytes().data(), sources[i].bytes.data(), sources[i].bytes.size());
    arguments.emplace_back(literal);
  }
  auto results = evaluate_function(module.main(), arguments);
  REQUIRE(results);
  auto constants = constants_with_bytes(program);
  REQUIRE(results->size() == constants.size());
  for (size_t i = 0; i < constants.size(); ++i)
    check_equal(*constants[i], (*results)[i].tensor->bytes().data(),
                constants[i]->packing.transform ? 1e-6f : 0); // dots have an order of their own
}

void check_compiled(const kernel::Program& program, const Module& module, const Machine& target) {
  auto prepare = firn::test::plan_and_lower(module, {target});
  if (!prepare) FAIL(prepare.error().message);
  kernel::bind_prepare(*prepare, lower::prepare_sources(program), program);
  memory::place_constants(*prepare);
  if (Result valid = kernel::verify(*prepare); !valid)
    FAIL(valid.error().message << kernel::print_program(*prepare));
  codegen::CodegenOptions options = options_for(target);
  options.prepare = &*prepare;
  options.prepare_symbol = "model_prepare";
  LoadedObject object(program, options);
  // The buffer's content before must not matter.
  GuardedBlock memory(static_cast<size_t>(program.weight_bytes), Placement::AtEnd);
  std::memset(memory.data(), 0xff, static_cast<size_t>(program.weight_bytes));
  REQUIRE(object.prepare(memory.data()) == 0);
  for (const kernel::Constant* constant : constants_with_bytes(program))
    check_equal(*constant, memory.data() + program.buffers[static_cast<size_t>(constant->buffer)].offset);
}

// The packings that a model has, by their constants; the module is as it is before passes.
struct Prepared {
  int packed = 0, transformed = 0, copied = 0;
};
Prepared expect_prepared(Module& source, const std::string& cpu, bool optimize_size = false) {
  INFO(cpu << "\n" << print_module(source));
  Machine target = target_of("", cpu);
  Goals goals{.opt_level = optimize_size ? OptLevel::Os : OptLevel::O3, .winograd = Winograd::All};
  PipelineRun run{PassOptions(goals, &target)};
  if (Result done = run_passes(source, default_pipeline(source, /*for_target=*/true), run); !done)
    FAIL(done.error().message);
  kernel::Program program = lower_program(source, cpu);
  std::unique_ptr<Module> module = lower::make_prepare_module(program);
  auto again = parse_module("prepare.hlo", print_module(*module));
  if (!again) FAIL(again.error().message);
  CHECK(print_module(**again) == print_module(*module));
  Prepared found;
  for (const kernel::Constant* constant : constants_with_bytes(program)) {
    auto packing = parse_packing(to_string(constant->packing));
    if (!packing) FAIL(packing.error().message << ": " << to_string(constant->packing));
    CHECK(*packing == constant->packing);
    ++(constant->packing.transform         ? found.transformed
       : is_padded_copy(constant->packing) ? found.copied
                                           : found.packed);
  }
  check_evaluated(program, *module);
  check_compiled(program, *module, target);
  return found;
}

Prepared expect_prepared(const std::string& text, const std::string& cpu, bool optimize_size = false) {
  auto parsed = parse_module("test.hlo", text);
  if (!parsed) FAIL(parsed.error().message);
  return expect_prepared(**parsed, cpu, optimize_size);
}

// lhs [rows, k] by a constant rhs.
std::string dot_text(int64_t rows, int64_t k, int64_t columns, bool transposed,
                     const Types& types = {"f32", "f32", "f32"}) {
  std::string weights = types.rhs + dims_text(transposed ? std::vector{columns, k} : std::vector{k, columns});
  std::string x = types.lhs + dims_text({rows, k}), y = types.result + dims_text({rows, columns});
  return "module @m {\n  func @main(%x: " + x + ") -> (" + y +
         ") {\n    %w = " + extreme_constant(types.rhs, k * columns, 1) + " : " + weights +
         "\n    %y = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [" +
         (transposed ? "1" : "0") + "], result = " + types.result + "} : " + y + "\n    return %y\n  }\n}\n";
}

std::string convolution_text(int64_t channels, int64_t filters, const std::string& in, const std::string& out,
                             const std::string& kernel, const std::string& window, int64_t groups = 1) {
  auto product = [](const std::string& dims) {
    int64_t value = 1;
    for (size_t at = 0; at < dims.size(); at = dims.find(',', at) + 1) {
      value *= std::stoll(dims.substr(at));
      if (dims.find(',', at) == std::string::npos) break;
    }
    return value;
  };
  std::string result = "f32[1," + std::to_string(filters) + "," + out + "]";
  return "module @m {\n  func @main(%x: f32[1," + std::to_string(channels) + "," + in + "]) -> (" + result +
         ") {\n    %w = " + random_constant(filters * (channels / groups) * product(kernel), 1) + " : f32[" +
         std::to_string(filters) + "," + std::to_string(channels / groups) + "," + kernel +
         "]\n    %c = convolution %x, %w {window = " + window + ", groups = " + std::to_string(groups) +
         "} : " + result + "\n    %r = maximum %c, %c : " + result + "\n    return %r\n  }\n}\n";
}

const char* const kCpus[] = {"x86-64", "x86-64-v3", "x86-64-v4"};

bool runs(const std::string& cpu) {
  return cpu != "x86-64-v4" || __builtin_cpu_supports("avx512f");
}

} // namespace

TEST_CASE("@prepare makes the columns of dots", "[lower][prepare]") {
  for (const char* cpu : kCpus) {
    if (!runs(cpu)) continue;
    for (bool transposed : {false, true})
      for (auto [rows, k, columns] :
           {std::tuple{1, 7, 5}, {4, 32, 24}, {9, 64, 40}, {3, 33, 129}, {64, 48, 3}})
        expect_prepared(dot_text(rows, k, columns, transposed), cpu);
    CHECK(expect_prepared(dot_text(4, 32, 72, true), cpu).packed == 1);
    expect_prepared(dot_text(5, 40, 50, true, {"f16", "f16", "f16"}), cpu);
    // Groups of k, whole ones and not.
    for (const Types& types : kProductTypes)
      for (bool transposed : {false, true})
        for (auto [k, columns] : {std::pair{40, 50}, {33, 16}, {3, 7}})
          expect_prepared(dot_text(5, k, columns, transposed, types), cpu);
  }
}

TEST_CASE("@prepare makes filters", "[lower][prepare]") {
  for (const char* cpu : kCpus) {
    if (!runs(cpu)) continue;
    Prepared found =
        expect_prepared(convolution_text(32, 80, "20,20", "20,20", "3,3", "3x3 pad 1_1x1_1"), cpu);
    CHECK(found.transformed == 1);
    // Column groups and vectors that are not full.
    expect_prepared(convolution_text(33, 49, "28,28", "28,28", "3,3", "3x3 pad 1_1x1_1"), cpu);
    expect_prepared(convolution_text(64, 64, "100", "100", "3", "3 pad 1_1"), cpu);
    expect_prepared(convolution_text(32, 32, "20,21", "20,21", "3,1", "3x1 pad 1_1x0_0"), cpu);
    expect_prepared(convolution_text(32, 32, "19,18", "19,18", "5,5", "5x5 pad 2_2x2_2"), cpu);
    CHECK(expect_prepared(convolution_text(16, 20, "9,13", "9,13", "1,1", "1x1"), cpu).packed == 1);
    // Parts of vectors of channels, in registers of several steps.
    expect_prepared(convolution_text(16, 24, "9,13", "9,13", "1,1", "1x1"), cpu);
    expect_prepared(convolution_text(8, 4, "30,30", "30,30", "1,1", "1x1"), cpu);
    expect_prepared(convolution_text(3, 16, "33,33", "17,17", "3,3", "3x3 pad 1_1x1_1 stride 2x2"), cpu);
    expect_prepared(convolution_text(24, 24, "12,12", "12,12", "3,3", "3x3 pad 1_1x1_1", 24), cpu);
    expect_prepared(convolution_text(36, 36, "12,12", "12,12", "3,3", "3x3 pad 1_1x1_1", 6), cpu);
    expect_prepared(convolution_text(16, 3, "16,16", "32,32", "2,2", "2x2 pad 1_1x1_1 input_dilate 2x2"),
                    cpu);
  }
}

TEST_CASE("@prepare lays constants out", "[lower][prepare]") {
  for (const char* cpu : kCpus) {
    if (!runs(cpu)) continue;
    // A constant per element of an image lies as the image does, channels that fill no block included.
    expect_prepared("module @m {\n  func @main(%x: f32[1,21,9,9]) -> (f32[1,21,9,9]) {\n    %w = " +
                        random_constant(21 * 21, 1) +
                        " : f32[21,21,1,1]\n    %a = " + random_constant(21 * 81, 2) +
                        " : f32[1,21,9,9]\n    %c = convolution %x, %w {window = 1x1, groups = 1} : "
                        "f32[1,21,9,9]\n    %y = add %c, %a : f32[1,21,9,9]\n    return %y\n  }\n}\n",
                    cpu);
  }
}

TEST_CASE("@prepare makes a table that is looked up and multiplied by once", "[lower][prepare][table]") {
  for (const char* cpu : kCpus) {
    if (!runs(cpu)) continue;
    for (auto [rows, width] : {std::pair{1, 3}, {37, 5}, {150, 12}}) {
      std::string found = dims_text({4, width}), scores = dims_text({2, rows});
      Prepared prepared = expect_prepared(
          "module @m {\n  func @main(%x: f32" + dims_text({2, width}) + ", %i: i64[4]) -> (f32" + found +
              ", f32" + scores + ") {\n    %t = " + random_constant(rows * width, 1) + " : f32" +
              dims_text({rows, width}) + "\n    %g = gather %t, %i {axis = 0} : f32" + found +
              "\n    %w = transpose %t {permutation = [1, 0]} : f32" + dims_text({width, rows}) +
              "\n    %y = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = "
              "[0]} : f32" +
              scores + "\n    return %g, %y\n  }\n}\n",
          cpu, /*optimize_size=*/true);
      CHECK(prepared.packed + prepared.copied == 1);
    }
  }
}

TEST_CASE("@prepare makes gate panels", "[lower][prepare]") {
  for (int64_t hidden : {int64_t{5}, int64_t{16}, int64_t{40}}) {
    auto make = [&] {
      auto module = std::make_unique<Module>("m");
      Function& main = module->add_function("main");
      GraphBuilder b(main.body());
      auto input = [&](const char* name, std::vector<Dim> dims) {
        return main.body().add_parameter(Type::tensor(DType::F32, std::move(dims)), name)->result();
      };
      auto weights = [&](std::vector<int64_t> dims) {
        auto literal = std::make_shared<Literal>(DType::F32, dims);
        for (int64_t i = 0; i < literal->num_elements(); ++i)
          literal->set_double(i, std::sin(1.0 + 0.7 * static_cast<double>(i)));
        return b.constant(literal);
      };
      RecurrentOperands o;
      o.x = input("x", {3, 2, 7});
      o.w = weights({4 * hidden, 7}), o.b = weights({4 * hidden}), o.r = weights({4 * hidden, hidden});
      o.h0 = input("h0", {2, hidden}), o.c0 = input("c0", {2, hidden});
      Instruction* layer = make_lstm(b, o, {});
      main.body().set_results({layer->result(0), layer->result(1), layer->result(2)});
      return module;
    };
    for (const char* cpu : kCpus)
      if (runs(cpu)) CHECK(expect_prepared(*make(), cpu).packed >= 1);
  }
}

TEST_CASE("packings that are written wrong are refused", "[lower][prepare]") {
  auto error_of = [](const std::string& text) {
    auto packing = parse_packing(text);
    return packing ? std::string() : packing.error().message;
  };
  CHECK(error_of("4 bytes, 8 of 8; 2x4 to 4x1 from 4x1 at 0 of 0").empty());
  CHECK(error_of("4 bytes, 8 of 7; 2x4 to 4x1 from 4x1 at 0 of 0 below 7 of 0 by 4x1").empty());
  CHECK(error_of("4 bytes, 8 of 7; 2x4 to 4x1 from 4x1 at 0 of 0").find("reads beyond") != std::string::npos);
  CHECK(error_of("4 bytes, 8 of 6; 2x4 to 4x1 from 4x1 at 0 of 0 below 7 of 0 by 4x1").find("reads beyond") !=
        std::string::npos);
  CHECK(error_of("4 bytes, 8 of 8; 2x4 to 5x1 from 4x1 at 0 of 0").find("beyond the packed") !=
        std::string::npos);
  CHECK(error_of("4 bytes, 9 of 8; 2x4 to 4x1 from 4x1 at 0 of 0").find("do not fill") != std::string::npos);
  CHECK(error_of("3 bytes, 8 of 8; 2x4 to 4x1 from 4x1 at 0 of 0").find("so many bytes") !=
        std::string::npos);
  CHECK(error_of("4 bytes, 8 of 8; 2x4 to 4x1 from 4 at 0 of 0").find("numbers of dims") !=
        std::string::npos);
  CHECK(error_of("4 bytes, 8 of 8; 2x4 to 4x1 from 4x1 at 0").find("expected 'of'") != std::string::npos);
  CHECK(error_of("4 bytes, 8 of 7; 2x4 to 4x1 from 4x1 at 0 of 0 items 1 below 7 of 0 by 4x1")
            .find("items under a bound") != std::string::npos);
  CHECK_FALSE(error_of("").empty());
}
