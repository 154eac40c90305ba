// See assembly_loops.h.
#include "tests/gates/assembly_loops.h"

#include <map>
#include <set>
#include <sstream>

namespace firn::test {
namespace {

bool starts_with(const std::string& text, const char* prefix) {
  return text.rfind(prefix, 0) == 0;
}

// One vector instruction taken apart.
struct VectorInstruction {
  std::string mnemonic, operands;
  size_t address = std::string::npos,
         last = std::string::npos; // of '(' and of the comma before the destination

  // False for what is no vector instruction.
  bool parse(const std::string& line) {
    size_t blank = line.find_first_of(" \t");
    if (line[0] != 'v' || blank == std::string::npos) return false;
    mnemonic = line.substr(0, blank);
    operands = line.substr(line.find_first_not_of(" \t", blank));
    address = operands.find('(');
    last = operands.rfind(',');
    bool inside = address != std::string::npos && last != std::string::npos && last > address &&
                  last < operands.find(')', address);
    if (inside) last = operands.rfind(',', address); // a comma of the address
    return true;
  }
  bool has_address() const { return address != std::string::npos; }
  bool reads() const { return has_address() && last != std::string::npos && last > address; }
  bool is_fma() const { return starts_with(mnemonic, "vfmadd"); }
  bool broadcasts_element() const {
    if (!reads() || operands.find("(%rip)") != std::string::npos) return false;
    return starts_with(mnemonic, "vbroadcastss") || operands.find("{1to") != std::string::npos;
  }
  std::string destination() const {
    return operands.substr(operands.find('%', last == std::string::npos ? 0 : last)).substr(0, 6);
  }
  // "-128(%rsp)", or empty. The compiler keeps no frame pointer: other registers hold anything.
  std::string stack_slot() const {
    if (!has_address() || operands.compare(address, 5, "(%rsp") != 0) return "";
    size_t begin = address > 0 ? operands.find_last_of(", ", address - 1) : std::string::npos;
    begin = begin == std::string::npos ? 0 : begin + 1;
    return operands.substr(begin, operands.find(')', address) + 1 - begin);
  }
};

void count_instructions(AssemblyLoop& loop) {
  std::set<std::string> accumulators, stored;
  std::map<std::string, int> loaded;
  for (const std::string& line : loop.lines) {
    VectorInstruction v;
    if (!v.parse(line)) continue;
    if (v.reads()) ++loop.loads;
    if (v.broadcasts_element()) ++loop.broadcasts;
    if (v.is_fma()) {
      ++loop.fmas;
      accumulators.insert(v.destination());
    }
    std::string slot = v.stack_slot();
    if (slot.empty()) continue;
    if (v.reads())
      ++loaded[slot];
    else
      stored.insert(slot), ++loop.spills;
  }
  loop.accumulators = static_cast<int>(accumulators.size());
  for (const auto& [slot, times] : loaded) (stored.count(slot) ? loop.spills : loop.stack_reads) += times;
}

// One function's lines with labels; jumps back enclose loops.
class FunctionLines {
public:
  explicit FunctionLines(std::string name) : name_(std::move(name)) {}

  void add(const std::string& line) {
    if (line[0] == '.' && line.back() == ':') {
      labels_[line.substr(0, line.size() - 1)] = lines_.size();
      return;
    }
    lines_.push_back(line);
    if (line[0] != 'j') return;
    auto target = labels_.find(line.substr(line.find_last_of(" \t") + 1));
    if (target != labels_.end()) ends_.push_back({target->first, target->second, lines_.size()});
  }

  void append_innermost(std::vector<AssemblyLoop>& loops) const {
    for (const Span& span : ends_) {
      bool innermost = true;
      for (const Span& other : ends_)
        if (&other != &span && other.begin >= span.begin && other.end <= span.end) innermost = false;
      if (!innermost) continue;
      AssemblyLoop loop;
      loop.function = name_;
      loop.label = span.label;
      for (size_t i = span.begin; i < span.end; ++i) loop.lines.push_back(lines_[i]);
      count_instructions(loop);
      loops.push_back(std::move(loop));
    }
  }

private:
  struct Span {
    std::string label;
    size_t begin, end;
  };
  std::string name_;
  std::vector<std::string> lines_;
  std::map<std::string, size_t> labels_;
  std::vector<Span> ends_;
};

} // namespace

std::string AssemblyLoop::to_string() const {
  std::ostringstream text;
  text << function << " " << label << ": " << fmas << " FMAs into " << accumulators << " accumulators, "
       << loads << " loads, " << spills << " spills, " << stack_reads << " stack reads";
  return text.str();
}

std::vector<AssemblyLoop> innermost_loops(const std::string& assembly) {
  std::vector<AssemblyLoop> loops;
  FunctionLines function("");
  std::istringstream stream(assembly);
  for (std::string line; std::getline(stream, line);) {
    line = line.substr(0, line.find('#'));
    size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos) continue;
    line = line.substr(first, line.find_last_not_of(" \t") + 1 - first);
    bool label = line.back() == ':';
    if (label && line[0] != '.') {
      function.append_innermost(loops);
      function = FunctionLines(line.substr(0, line.size() - 1));
    } else if (line[0] != '.' || (label && starts_with(line, ".LBB"))) {
      function.add(line);
    }
  }
  function.append_innermost(loops);
  return loops;
}

} // namespace firn::test
