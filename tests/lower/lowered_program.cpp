// See lowered_program.h.
#include "tests/lower/lowered_program.h"

#include "compiler/graph/evaluate.h"
#include "compiler/graph/verify.h"
#include "compiler/memory/plan.h"
#include "tests/codegen/model_object.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <random>

namespace firn::test {
namespace {

std::unique_ptr<Module> parse(const std::string& text) {
  auto module = parse_module("test.hlo", text);
  if (!module) FAIL(module.error().message << "\n" << text);
  if (Result result = verify(**module); !result) FAIL(result.error().message << "\n" << text);
  return std::move(*module);
}

LiteralRef random_literal(const Type& type, const Range* range, std::mt19937& random) {
  auto literal = std::make_shared<Literal>(type.dtype, type.static_dims());
  for (int64_t i = 0; i < literal->num_elements(); ++i) {
    if (type.dtype == DType::Bool) {
      literal->set_int(i, random() % 2);
    } else if (is_float(type.dtype)) {
      Range r = range ? *range : Range{-2, 2};
      literal->set_double(i, std::uniform_real_distribution<double>(r.low, r.high)(random));
    } else {
      Range r = range ? *range : Range{is_signed(type.dtype) ? -5.0 : 0.0, 5};
      literal->set_int(i, std::uniform_int_distribution<int64_t>(static_cast<int64_t>(r.low),
                                                                 static_cast<int64_t>(r.high))(random));
    }
  }
  return literal;
}

void compare(const Literal& actual, const Literal& expected, double tolerance) {
  double largest = 0;
  bool exact = tolerance == 0 || !is_float(expected.dtype());
  for (int64_t i = 0; i < expected.num_elements(); ++i)
    if (double v = std::fabs(expected.get_double(i)); std::isfinite(v)) largest = std::max(largest, v);
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    double a = actual.get_double(i), e = expected.get_double(i);
    bool same = (std::isnan(a) && std::isnan(e)) || a == e ||
                (!exact && std::isfinite(a) && std::isfinite(e) && std::fabs(a - e) <= tolerance * largest);
    if (exact && !is_float(expected.dtype())) same = actual.get_int(i) == expected.get_int(i);
    if (!same) FAIL("element " << i << " is " << a << ", wanted " << e << " (largest " << largest << ")");
  }
}

kernel::Program lower(const Module& module, const TargetMachine& target,
                      lower::Winograd winograd = lower::Winograd::Embed) {
  lower::Options options;
  options.target = target;
  options.winograd = winograd;
  auto program = lower::lower_module(module, options);
  if (!program) FAIL(program.error().message);
  if (Result result = kernel::verify(*program); !result)
    FAIL(result.error().message << "\n" << kernel::print_program(*program));
  kernel::merge_equal_kernels(*program);
  memory::plan_arena(*program);
  memory::place_constants(*program);
  if (Result result = kernel::verify(*program); !result)
    FAIL(result.error().message << "\n" << kernel::print_program(*program));
  return std::move(*program);
}

} // namespace

kernel::Program lower_text(const std::string& text, const std::string& cpu, lower::Winograd winograd) {
  return lower(*parse(text), target_of("", cpu), winograd);
}

kernel::Program lower_program(const Module& module, const std::string& cpu) {
  return lower(module, target_of("", cpu));
}

void expect_lowered_module(const std::string& text, const LoweredOptions& options) {
  expect_lowered_module(*parse(text), options);
}

void expect_lowered_module(const Module& module, const LoweredOptions& options) {
  std::string text = print_module(module);
  const Region& body = module.main().body();
  std::mt19937 random(1);
  std::vector<LiteralRef> inputs;
  for (size_t i = 0; i < body.parameters().size(); ++i) {
    auto range = options.ranges.find(body.parameters()[i]->name());
    inputs.push_back(random_literal(body.parameter(static_cast<int>(i)).type(),
                                    range == options.ranges.end() ? nullptr : &range->second, random));
  }
  auto expected = evaluate(module, inputs);
  if (!expected) FAIL(expected.error().message << "\n" << text);
  for (const std::string& cpu : options.cpus) {
    INFO(cpu << "\n" << text);
    TargetMachine target = target_of("", cpu);
    kernel::Program program = lower(module, target);
    INFO(kernel::print_program(program));
    LoadedObject object(program, options_for(target));
    std::vector<const void*> arguments;
    for (const LiteralRef& input : inputs) arguments.push_back(input->bytes().data());
    std::vector<std::shared_ptr<Literal>> outputs;
    std::vector<void*> results;
    for (const LiteralRef& literal : *expected) {
      outputs.push_back(std::make_shared<Literal>(literal->dtype(), literal->dims()));
      results.push_back(outputs.back()->mutable_bytes().data());
    }
    // What an arena holds before a run must not matter.
    std::vector<unsigned char> arena(static_cast<size_t>(program.arena_bytes) + 64, 0xff);
    auto start = reinterpret_cast<uintptr_t>(arena.data());
    REQUIRE(object.run(arguments, results, arena.data() + (64 - start % 64) % 64) == 0);
    for (size_t i = 0; i < outputs.size(); ++i) compare(*outputs[i], *(*expected)[i], options.tolerance);
  }
}

void expect_lowered(const std::string& parameters, const std::string& body, const std::string& type,
                    const LoweredOptions& options) {
  expect_lowered_module("module @test {\n  func @main(" + parameters + ") -> (" + type + ") {\n" + body +
                            "\n    return %r\n  }\n}\n",
                        options);
}

std::string lowering_error(const std::string& text) {
  lower::Options options;
  options.target = target_of("", "x86-64-v3");
  auto program = lower::lower_module(*parse(text), options);
  return program ? "" : program.error().message;
}

} // namespace firn::test
