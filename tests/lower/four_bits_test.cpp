// Weights of bytes whose values all fit four bits: they are held in four bits, and widened in registers or
// once for all rows.
#include "tests/lower/typed_cases.h"

#include <catch2/catch.hpp>

#include <array>

using namespace firn;
using namespace firn::test;

namespace {

const std::vector<Types> kTypes = {kUnlikeBytes, kSignedBytes, kI16Bytes};

DotCase dot_of(const Types& types, int64_t m, int64_t k, int64_t n, const std::string& plan = "") {
  return {types, m, k, n, true, plan, "i4"};
}

void expect_dot(const DotCase& c, const std::vector<std::string>& cpus, int threads = 1) {
  for (Placement placement : {Placement::AtEnd, Placement::AtStart}) {
    LoweredOptions options = options_for(c.types, cpus);
    options.placement = placement;
    options.threads = threads;
    expect_lowered_module(c.text(), options);
  }
}

// Bytes that a program holds.
int64_t bytes_of_constants(const std::string& text, const std::string& cpu) {
  int64_t bytes = 0;
  kernel::Program program = lower_text(text, cpu);
  for (const kernel::Constant& constant : program.constants)
    bytes += constant.packing.packed_elements * constant.packing.element_bytes;
  return bytes;
}

} // namespace

TEST_CASE("dots multiply by columns of four bits", "[lower][four_bits]") {
  for (const Types& types : kTypes)
    for (auto [m, k, n] : {std::array<int64_t, 3>{1, 64, 96},
                           {1, 3, 1},
                           {4, 29, 17},
                           {17, 130, 37},
                           {33, 64, 16},
                           {5, 8, 70}}) {
      INFO(types.lhs << ", " << m << " x " << k << " x " << n);
      expect_dot(dot_of(types, m, k, n), kProductCpus);
    }
}

TEST_CASE("columns of four bits follow plans written by hand", "[lower][four_bits][plan]") {
  for (const Types& types : kTypes)
    for (const char* rest : {" tile 4x2 columns outermost four_bits", " tile 5x3 rows outermost four_bits",
                             " tile 4x2 columns outermost four_bits widened",
                             " tile 3x1 panel 3 columns outermost four_bits widened",
                             " tile 3x1 panel 2 columns outermost four_bits",
                             " tile 2x2 columns outermost row_block 6 four_bits widened",
                             " tile 4x1 columns outermost split_k 3 four_bits widened",
                             " tile 3x1 columns outermost split_m 2 four_bits widened",
                             " tile 6x2 columns outermost optimize_size four_bits widened"}) {
      std::string product = are_bytes(types) ? "dot4 " : "dot2 ";
      INFO(types.lhs << rest);
      DotCase c =
          dot_of(types, 13, 61, 37, "direct mac " + product + types.lhs + " " + types.rhs + " i32" + rest);
      expect_dot(c, {"native", "x86-64-v3", "neoverse-n1"}, 3);
    }
}

TEST_CASE("code for a CPU reads columns of four bits in the panels of another", "[lower][four_bits]") {
  for (const Types& types : kTypes)
    for (int64_t m : {1, 40})
      expect_dot(dot_of(types, m, 64, 150), {"x86-64-v3 in x86-64-v4", "x86-64 in x86-64-v3"});
}

TEST_CASE("convolutions multiply by filters of four bits", "[lower][four_bits]") {
  for (const Types& types : kTypes)
    for (auto layout : {ConvolutionCase::Fixed, ConvolutionCase::Blocked, ConvolutionCase::ChannelsLast})
      for (bool grouped : {false, true})
        for (const std::string& cpu : kProductCpus) {
          INFO(cpu << ", " << types.lhs << ", layout " << layout << (grouped ? ", groups" : ""));
          ConvolutionCase c{types, 32, 40, grouped ? 2 : 1};
          c.layout = layout;
          c.numbers_of = "i4";
          LoweredOptions options = options_for(types, {cpu});
          options.threads = grouped ? 3 : 1;
          expect_lowered_module(c.text(cpu), options);
          c = {types, 16, 19, 1, 1, "1x1"};
          c.layout = layout;
          c.numbers_of = "i4";
          expect_lowered_module(c.text(cpu), options_for(types, {cpu}));
        }
}

TEST_CASE("what four bits have takes half the bytes", "[lower][four_bits]") {
  DotCase small = dot_of(kUnlikeBytes, 9, 64, 64), large = small;
  large.numbers_of = "";
  CHECK(bytes_of_constants(small.text(), "x86-64-v3") == 64 * 64 / 2);
  CHECK(bytes_of_constants(large.text(), "x86-64-v3") == 64 * 64);
  ConvolutionCase filters{kUnlikeBytes, 64, 64};
  filters.numbers_of = "i4";
  CHECK(bytes_of_constants(filters.text("x86-64-v4"), "x86-64-v4") == 64 * 64 * 9 / 2);
  // Without vectors a byte is read faster than a half of one is taken apart.
  CHECK(bytes_of_constants(small.text(), "cortex-m4") == 64 * 64);
}

TEST_CASE("plans that hold in four bits what these do not have are refused", "[lower][four_bits][plan]") {
  std::string product = "direct mac dot4 u8 i8 i32 tile 4x2 ";
  auto error_of = [&](const std::string& rest, const std::string& numbers_of) {
    DotCase c = dot_of(kUnlikeBytes, 9, 64, 64, product + rest);
    c.numbers_of = numbers_of;
    return lowering_error(c.text());
  };
  auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  CHECK(has(error_of("columns outermost four_bits", ""), "small numbers lie in four bits"));
  CHECK(has(error_of("columns outermost widened", ""), "fewer bits than products take are widened"));
  CHECK(has(error_of("rows outermost four_bits widened", "i4"), "widened by the group, outermost"));
  ConvolutionCase c{kUnlikeBytes, 64, 37};
  c.plan = product + "columns outermost widened";
  CHECK(has(lowering_error(c.text("x86-64-v3")), "filters of four bits are widened"));
}
