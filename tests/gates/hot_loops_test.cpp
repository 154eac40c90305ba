// Every hot loop of the gate kernels: no spills, the tile that the algorithm promises, and no more loads and
// scalar instructions than it needs.
#include "compiler/graph/hlo_text.h"
#include "tests/codegen/model_object.h"
#include "tests/gates/gate_kernels.h"
#include "tests/gates/gate_networks.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>

using namespace firn::test;

namespace {

// Addresses advance by constants: other scalar instructions in a loop of many FMAs would take their pipes.
constexpr int kLongLoop = 40;
constexpr double kScalarsPerFma = 0.13;

// Loads of a step over its FMAs for the tile that the loop's accumulators make, edge tiles included; 0 if
// they make none.
double loads_allowed(const AssemblyLoop& loop, const PromisedTile& tile) {
  double allowed = 0;
  for (int vectors : {tile.vectors, tile.rest_vectors}) {
    if (vectors == 0 || loop.accumulators % (vectors * tile.accumulator_splits) != 0) continue;
    int rows = loop.accumulators / (vectors * tile.accumulator_splits);
    if (rows <= tile.rows)
      allowed = std::max(allowed, static_cast<double>(rows + vectors) / (rows * vectors));
  }
  return allowed;
}

// The faults of a kernel's hot loops, one line each; empty if there are none.
std::string faults(const GateCode& code) {
  std::ostringstream text;
  bool full_tile = code.tile.rows == 0;
  int full = code.tile.rows * code.tile.vectors * code.tile.accumulator_splits;
  for (const AssemblyLoop& loop : code.loops) {
    if (!loop.is_hot()) continue;
    if (loop.spills > 0) text << loop.to_string() << ": it spills\n";
    if (code.tile.rows == 0 || loop.broadcasts == 0) continue;
    full_tile |= loop.accumulators == full;
    double allowed = loads_allowed(loop, code.tile);
    if (loop.fmas % code.tile.vectors != 0 && code.tile.rest_vectors == 0)
      text << loop.to_string() << ": not a multiple of " << code.tile.vectors << " vectors\n";
    if (allowed == 0)
      text << loop.to_string() << ": its accumulators are no tile of at most " << code.algorithm << "\n";
    else if (loop.loads > loop.fmas * allowed * 1.05)
      text << loop.to_string() << ": " << loop.fmas * allowed << " loads are enough\n";
    if (loop.fmas >= kLongLoop && loop.scalars > loop.fmas * kScalarsPerFma)
      text << loop.to_string() << ": " << loop.scalars << " instructions for addresses and control\n";
  }
  if (!full_tile) text << "no loop has the " << full << " accumulators of the full tile\n";
  return text.str();
}

const GateKernel& kernel_of(const std::string& name) {
  for (const GateKernel& kernel : gate_kernels())
    if (kernel.name == name) return kernel;
  FAIL("no gate kernel '" << name << "'");
  return gate_kernels()[0];
}

} // namespace

TEST_CASE("hot loops keep their tiles in registers", "[gates]") {
  for (const GateKernel& kernel : gate_kernels())
    for (const std::string& cpu : gate_cpus()) {
      GateCode code = compile_gate_kernel(kernel, cpu);
      INFO(kernel.name << " on " << cpu << ": " << code.algorithm);
      CHECK(faults(code) == "");
    }
}

TEST_CASE("a tile beyond the registers is seen to spill", "[gates]") {
  const GateKernel& kernel = kernel_of("convolution 1x1");
  for (const std::string& cpu : gate_cpus()) {
    GateCode code = compile_gate_kernel(kernel, cpu, "direct tile 20x3");
    INFO(cpu << ": " << code.algorithm);
    CHECK(code.algorithm == "1 direct 20x3");
    CHECK(faults(code).find("it spills") != std::string::npos);
  }
}

TEST_CASE("loops of assembly are counted", "[gates]") {
  const char* text =
      "kernel:\n.LBB0_1: # outer\n\t# =>This Loop Header: Depth=1\n\t#     Child Loop BB0_2 Depth 2\n"
      "\txorl %eax, %eax\n\tmovq %rbx, 8(%rsp) # 8-byte Spill\n.LBB0_2: # loop\n"
      "\t#   Parent Loop BB0_1 Depth=1\n\t# =>  This Inner Loop Header: Depth=2\n"
      "\tvmovups (%rdi,%rax,4), %zmm0\n"
      "\tvfmadd231ps (%rsi){1to16}, %zmm0, %zmm1\n\tvbroadcastss 4(%rsi), %zmm3\n"
      "\tvfmadd231ps %zmm3, %zmm0, %zmm2\n\tvmovups %zmm2, -64(%rsp) # 64-byte Spill\n"
      "\tvmovups -64(%rsp), %zmm2 # 64-byte Reload\n\tvmovups 128(%rsp), %zmm4 # 64-byte Reload\n"
      "\tvmovups %zmm2, 192(%rsp)\n\tvmovups %zmm1, (%rdx,%rax,4)\n\tprefetcht0 64(%rsi)\n"
      "\tjne .LBB0_2\n# %bb.3:\n\t#   in Loop: Header=BB0_1 Depth=1\n\taddq 8(%rsp), %rcx # 8-byte Folded "
      "Reload\n"
      "\tjne .LBB0_1\n# %bb.4:\n\tretq\n";
  auto loops = innermost_loops(text);
  REQUIRE(loops.size() == 1);
  CHECK(loops[0].first_spill == "vmovups %zmm2, -64(%rsp)");
  CHECK(loops[0].to_string() ==
        "kernel .LBB0_2: 2 FMAs into 2 accumulators, 5 loads, 2 spills, 1 stack reads");
  CHECK(loops[0].broadcasts == 2);
  CHECK(loops[0].scalars == 1);
  REQUIRE(loops_of(text).size() == 2);
  const AssemblyLoop outer = loops_of(text)[0];
  CHECK(outer.height == 1);
  CHECK(outer.lines.size() == 4);
  CHECK(outer.spills == 0);
  CHECK(outer.scalar_spills == 2);
}

TEST_CASE("products of bytes, of i16 and of bf16 are one instruction, of sums in registers", "[gates]") {
  struct Case {
    std::string lhs, rhs, sums, mnemonic;
    std::vector<const char*> cpus;
    std::string plan;
    int products;
  };
  const std::vector<const char*> wide = {"znver4", "cooperlake"};
  for (const Case& c : {Case{"u8", "i8", "i32", "vpdpbusd", wide, "8x3", 24},
                        Case{"bf16", "bf16", "f32", "vdpbf16ps", wide, "8x3", 24},
                        Case{"i16", "i8", "i32", "vpdpwssd", wide, "8x3", 24},
                        Case{"u8", "i8", "i32", "vpmaddubsw", {"x86-64-v3", "znver3", "haswell"}, "4x2", 8},
                        Case{"i16", "i8", "i32", "vpmaddwd", {"x86-64-v3", "znver3", "haswell"}, "4x2", 8}})
    for (const char* cpu : c.cpus) {
      std::string w = c.rhs + "[256,96]", ones = "1";
      for (int i = 1; i < 256 * 96; ++i) ones += ", 1";
      // vpmaddubsw is used only if weights are known and sums of pairs fit i16.
      bool is_known = c.mnemonic == "vpmaddubsw";
      std::string text = "module @m { func @main(%x: " + c.lhs + "[48,256]" + (is_known ? "" : ", %w: " + w) +
                         ") -> (" + c.sums + "[48,96]) { " +
                         (is_known ? "%w = constant [" + ones + "] : " + w : "") +
                         " %y = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = "
                         "[1], rhs_contract = [0], result = " +
                         c.sums + "} : " + c.sums + "[48,96] return %y } }";
      GateKernel kernel{c.mnemonic, [&](int) { return std::move(*firn::parse_module("gate.hlo", text)); }};
      GateCode code = compile_gate_kernel(kernel, cpu, "direct tile " + c.plan + " columns outermost");
      INFO(cpu << ": " << code.algorithm);
      int hot_loops = 0;
      for (const AssemblyLoop& loop : code.loops) {
        auto products = std::count_if(loop.lines.begin(), loop.lines.end(), [&](const std::string& line) {
          return line.find(c.mnemonic) != std::string::npos;
        });
        INFO(loop.to_string());
        CHECK((products == 0 || (products % c.products == 0 && loop.spills == 0)));
        hot_loops += products >= c.products;
      }
      CHECK(hot_loops > 0);
    }
}

TEST_CASE("attention multiplies pairs of bf16 by sums in registers", "[gates]") {
  std::string text = attention_text(2, 96, 128, ", plan = \"attention mac dot2 bf16 bf16 f32\"");
  for (const char* cpu : {"znver4", "cooperlake"}) {
    int hot_loops = 0;
    for (const AssemblyLoop& loop : innermost_loops(assembly_of(text, target_of("x86_64-linux-gnu", cpu)))) {
      auto products = std::count_if(loop.lines.begin(), loop.lines.end(), [](const std::string& line) {
        return line.find("vdpbf16ps") != std::string::npos;
      });
      INFO(cpu << ": " << loop.to_string());
      CHECK((products == 0 || loop.spills == 0));
      hot_loops += products >= 4 * 20; // four pairs of steps, and most of the registers
    }
    CHECK(hot_loops == 2); // one makes scores, over depths, and one makes results, over keys
  }
}

TEST_CASE("recurrent layers split their sums as far as there are registers", "[gates]") {
  for (const GateNetwork& network : gate_networks()) {
    if (network.name.rfind("recurrent", 0) != 0) continue;
    for (const char* cpu : {"x86-64-v2", "x86-64-v3", "haswell", "znver1", "znver2"}) {
      int hot_loops = 0;
      for (const AssemblyLoop& loop : innermost_loops(compile_network(network, cpu))) {
        if (!loop.is_hot() || loop.broadcasts == 0) continue;
        INFO(network.name << " on " << cpu << ": " << loop.to_string());
        CHECK(loop.spills == 0);
        ++hot_loops;
      }
      CHECK(hot_loops > 0);
    }
  }
}

TEST_CASE("the largest of halves is compared in vectors", "[gates]") {
  std::string text = "module @m { func @main(%x: f16[4,256], %y: f16[4,256]) -> (f16[4,256]) { "
                     "%z = maximum %x, %y : f16[4,256] return %z } }";
  for (const char* cpu : {"x86-64-v3", "x86-64-v4", "sapphirerapids"}) {
    GateKernel kernel{"maximum", [&](int) { return std::move(*firn::parse_module("gate.hlo", text)); }};
    for (const AssemblyLoop& loop : compile_gate_kernel(kernel, cpu).loops)
      for (const std::string& line : loop.lines) {
        INFO(cpu << ": " << line);
        CHECK(line.find("comiss") == std::string::npos);
      }
  }
}
