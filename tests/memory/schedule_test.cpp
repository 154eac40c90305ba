// The order of execution: a wide front is taken depth first where that lowers the peak.
#include "compiler/memory/schedule.h"

#include "compiler/graph/text.h"
#include "compiler/graph/verify.h"

#include <catch2/catch.hpp>

using namespace firn;

namespace {

std::unique_ptr<Module> parse(const std::string& text) {
  auto module = parse_module("schedule.hlo", text);
  if (!module) FAIL(module.error().message);
  return std::move(*module);
}

} // namespace

TEST_CASE("branches that shrink are finished one after the other") {
  // Given breadth first, all wide values live at once.
  std::string body;
  for (const char* i : {"0", "1", "2"})
    body += "%w" + std::string(i) + " = broadcast_in_dim %x {dims = [0]} : f32[8,100]\n";
  for (const char* i : {"0", "1", "2"})
    body += "%e" + std::string(i) + " = exponential %w" + i + " : f32[8,100]\n";
  for (const char* i : {"0", "1", "2"})
    body += "%s" + std::string(i) + " = slice %e" + i +
            " {starts = [0, 0], limits = [8, 1], strides = [1, 1]} : f32[8,1]\n";
  body += "%a = add %s0, %s1 : f32[8,1]\n%b = add %a, %s2 : f32[8,1]\nreturn %b\n";
  auto module = parse("module @m {\nfunc @main(%x: f32[8]) -> (f32[8,1]) {\n" + body + "}\n}\n");
  CHECK(memory::minimize_peak(*module));
  CHECK(verify(*module));
  std::string text = print_module(*module);
  CHECK(text.find("%s0 =") < text.find("%w1 ="));
  CHECK(text.find("%s1 =") < text.find("%w2 ="));
  CHECK_FALSE(memory::minimize_peak(*module));
}

TEST_CASE("what reads a state stays before its next value") {
  // The peak would be lower with %n first, which frees %w.
  auto text = [](const char* aliases) {
    return "module @m {\nfunc @main(%x: f32[8], %s: f32[8]) -> (f32[8], f32[1]) " + std::string(aliases) +
           " {\n%w = broadcast_in_dim %x {dims = [1]} : f32[90,8]\n%v = broadcast_in_dim %s {dims = [1]} : "
           "f32[99,8]\n%c = slice %v {starts = [0, 0], limits = [1, 1], strides = [1, 1]} : f32[1,1]\n"
           "%d = slice %w {starts = [0, 0], limits = [1, 8], strides = [1, 1]} : f32[1,8]\n"
           "%n = reshape %d : f32[8]\n%m = negate %n : f32[8]\n%r = reshape %c : f32[1]\nreturn %m, "
           "%r\n}\n}\n";
  };
  for (bool is_state : {false, true}) {
    auto module = parse(text(is_state ? "aliases [1, -1]" : ""));
    memory::minimize_peak(*module);
    CHECK(verify(*module));
    std::string order = print_module(*module);
    CHECK((order.find("%v =") < order.find("%m =")) == is_state);
  }
}

TEST_CASE("an order that cannot be bettered stays") {
  auto module = parse("module @m {\nfunc @main(%x: f32[8]) -> (f32[8]) {\n"
                      "%a = exponential %x : f32[8]\n%b = negate %a : f32[8]\nreturn %b\n}\n}\n");
  std::string before = print_module(*module);
  CHECK_FALSE(memory::minimize_peak(*module));
  CHECK(print_module(*module) == before);
}
