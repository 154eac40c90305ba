// The kernel around one instruction.
#include "tests/ptx/one_instruction.h"

#include "compiler/ptx/module.h"

#include <bit>

namespace firn::ptx::test {
namespace {

const char* const kNames[] = {"%a", "%b", "%c", "%e"};

int bytes_of(const std::string& type) {
  return type == "b64" ? 8 : type == "b16" ? 2 : 4;
}

std::string load(const std::string& type, const char* name, size_t i) {
  std::string at = "[%in+" + std::to_string(8 * i) + "];\n";
  if (type == "pred") return "ld.global.b32 %t, " + at + "setp.ne.b32 " + name + ", %t, 0;\n";
  return "ld.global." + type + " " + name + ", " + at;
}

std::string store(const std::string& type) {
  if (type == "pred") return "selp.b32 %t, 1, 0, %d;\nst.global.b32 [%out], %t;\n";
  return "st.global." + type + " [%out], %d;\n";
}

std::string kernel(const std::string& text, const Signature& signature) {
  std::string body =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry one(.param .u64 i, .param .u64 o) {\n"
      ".reg .b64 %in, %out;\n.reg .b32 %t;\n.reg ." +
      signature.result + " %d;\n";
  for (size_t i = 0; i < signature.sources.size(); ++i)
    body += ".reg ." + signature.sources[i] + " " + kNames[i] + ";\n";
  body += "ld.param.u64 %in, [i];\nld.param.u64 %out, [o];\n";
  for (size_t i = 0; i < signature.sources.size(); ++i) body += load(signature.sources[i], kNames[i], i);
  return body + text + "\n" + store(signature.result) + "ret;\n}\n";
}

} // namespace

uint64_t run_instruction(const std::string& text, const Signature& signature,
                         const std::vector<uint64_t>& values, std::string* error) {
  auto refuse = [&](const std::string& message) {
    if (error) *error = message;
    return error ? 0 : 0xbadbadbadbad0000;
  };
  auto module = parse(kernel(text, signature));
  if (!module) return refuse(module.error().message);
  Memory memory;
  uint64_t in = memory.allocate("in", values), out = memory.allocate("out", 8, Memory::Contents::Zero);
  auto done = launch(*module, "one", {1, 1, 1}, {1, 1, 1}, 0, Arguments().add(in).add(out), memory);
  if (!done) return refuse(done.error().message);
  uint64_t result = 0;
  if (!memory.read(out, &result, static_cast<uint64_t>(bytes_of(signature.result))))
    return refuse("no result");
  return result;
}

uint32_t bits(float value) {
  return std::bit_cast<uint32_t>(value);
}
uint64_t bits(double value) {
  return std::bit_cast<uint64_t>(value);
}

} // namespace firn::ptx::test
