// See coverage.h.
#include "tests/random/coverage.h"

#include "tests/random/generate.h"

#include <cstdio>
#include <set>

namespace firn::test {
namespace {

// Graph ops that imported modules do not hold, or that have more than one right answer.
bool is_exempt(Opcode opcode) {
  switch (opcode) {
  case Opcode::Call: // functions are inlined
  case Opcode::Fusion:
  case Opcode::MultiplyAdd:
  case Opcode::Narrow:
  case Opcode::Copy:       // only passes make these four
  case Opcode::RngUniform: // results are random
  case Opcode::Custom:     // calls a function of the program
  // No operator of ONNX asks for them.
  case Opcode::Atan2:
  case Opcode::CountOnes:
  case Opcode::SelectAndScatter:
  case Opcode::StopGradient:
  case Opcode::DynamicBroadcast:
  case Opcode::DynamicIota:
  case Opcode::DynamicPad:
  case Opcode::DynamicReshape: return true;
  // Resolved by the elements that sequences list.
  default: return op_info(opcode).op_class == OpClass::Container;
  }
}

void add_opcodes(const Region& region, std::set<Opcode>& opcodes) {
  for (const auto& instruction : region.instructions()) {
    opcodes.insert(instruction->opcode());
    for (int i = 0; i < instruction->num_regions(); ++i) add_opcodes(instruction->region(i), opcodes);
  }
}

} // namespace

bool report_coverage(uint64_t first, uint64_t end) {
  std::map<Opcode, int> opcodes;
  std::map<std::string, int> operators;
  int open = 0, open_nodes = 0, counted = 0;
  for (uint64_t seed = first; seed < end; ++seed) {
    TestCase test = generate_case(seed);
    open += test.graph.is_open(), counted += test.graph.counted;
    if (test.graph.is_open()) open_nodes += static_cast<int>(test.graph.nodes.size());
    std::set<std::string> names;
    for (const TestNode& node : test.graph.nodes) names.insert(node.op);
    for (const std::string& name : names) ++operators[name];
    DiagnosticList diagnostics;
    auto imported =
        onnx::import_onnx_bytes("model.onnx", test.graph.encode(), test.graph.import_options(), diagnostics);
    if (!imported) continue; // a failure of the campaign
    std::set<Opcode> held;
    add_opcodes(imported->module->main().body(), held);
    for (Opcode opcode : held) ++opcodes[opcode];
  }
  for (const auto& [name, count] : operators) std::printf("%6d %s\n", count, name.c_str());
  std::printf("%d graphs have dims that are no numbers, %d of them counted; %d nodes in them\n", open,
              counted, open_nodes);
  bool complete = true;
  for (int i = 0; i <= static_cast<int>(Opcode::SequenceMake); ++i) {
    auto opcode = static_cast<Opcode>(i);
    std::printf("%6d %s%s\n", opcodes[opcode], std::string(opcode_name(opcode)).c_str(),
                is_exempt(opcode) ? " (exempt)" : "");
    complete &= opcodes[opcode] > 0 || is_exempt(opcode);
  }
  return complete;
}

} // namespace firn::test
