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

// An instruction, and whether the compiler's comment calls it a vector register's way to or from the stack.
// Arrays on the stack are none: they are meant.
struct Line {
  std::string text;
  bool spills = false, reloads = false;

  void read_comment(const std::string& comment) {
    bool vector = false;
    for (const char* size : {"16-byte ", "32-byte ", "64-byte "})
      vector |= comment.find(size) != std::string::npos;
    spills = vector && comment.find("Spill") != std::string::npos;
    reloads = vector && comment.find("Reload") != std::string::npos;
  }
};

// One vector instruction taken apart.
struct VectorInstruction {
  std::string mnemonic, operands;
  size_t address = std::string::npos,
         last = std::string::npos; // of '(' and of the comma before the destination

  // False for what is no vector instruction.
  bool parse(const std::string& line) {
    size_t blank = line.find_first_of(" \t");
    if (blank == std::string::npos) return false;
    mnemonic = line.substr(0, blank);
    operands = line.substr(line.find_first_not_of(" \t", blank));
    if (operands.find("mm") == std::string::npos) return false;
    address = operands.find('(');
    last = operands.rfind(',');
    bool inside = address != std::string::npos && last != std::string::npos && last > address &&
                  last < operands.find(')', address);
    if (inside) last = operands.rfind(',', address); // a comma of the address
    return true;
  }
  bool has_address() const { return address != std::string::npos; }
  bool reads() const { return has_address() && last != std::string::npos && last > address; }
  // Without an instruction for both, a product and a sum of their own.
  bool is_fma() const { return starts_with(mnemonic, "vfmadd") || mnemonic == "mulps"; }
  bool is_sum() const { return starts_with(mnemonic, "vfmadd") || mnemonic == "addps"; }
  bool broadcasts_element() const {
    if (!reads() || operands.find("(%rip)") != std::string::npos) return false;
    return starts_with(mnemonic, "vbroadcastss") || mnemonic == "movss" ||
           operands.find("{1to") != std::string::npos;
  }
  std::string destination() const {
    return operands.substr(operands.find('%', last == std::string::npos ? 0 : last)).substr(0, 6);
  }
  // "-128(%rsp)" of a spill or reload.
  std::string stack_slot() const {
    if (!has_address()) return "";
    size_t begin = address > 0 ? operands.find_last_of(", ", address - 1) : std::string::npos;
    begin = begin == std::string::npos ? 0 : begin + 1;
    return operands.substr(begin, operands.find(')', address) + 1 - begin);
  }
};

void count_instructions(AssemblyLoop& loop, const std::vector<Line>& lines) {
  std::set<std::string> accumulators, stored;
  std::map<std::string, int> loaded;
  for (const Line& line : lines) {
    VectorInstruction v;
    if (!v.parse(line.text)) {
      loop.scalars += !starts_with(line.text, "prefetch");
      continue;
    }
    if (v.reads()) ++loop.loads;
    if (v.broadcasts_element()) ++loop.broadcasts;
    if (v.is_fma()) ++loop.fmas;
    if (v.is_sum()) accumulators.insert(v.destination());
    if (line.spills) stored.insert(v.stack_slot()), ++loop.spills;
    if (line.reloads) ++loaded[v.stack_slot()];
  }
  loop.accumulators = static_cast<int>(accumulators.size());
  for (const auto& [slot, times] : loaded) (stored.count(slot) ? loop.spills : loop.stack_reads) += times;
}

// One function's lines with labels; jumps back enclose loops.
class FunctionLines {
public:
  explicit FunctionLines(std::string name) : name_(std::move(name)) {}

  void add(const Line& line) {
    const std::string& text = line.text;
    if (text[0] == '.' && text.back() == ':') {
      labels_[text.substr(0, text.size() - 1)] = lines_.size();
      return;
    }
    lines_.push_back(line);
    if (text[0] != 'j') return;
    auto target = labels_.find(text.substr(text.find_last_of(" \t") + 1));
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
      for (size_t i = span.begin; i < span.end; ++i) loop.lines.push_back(lines_[i].text);
      count_instructions(loop, {lines_.begin() + static_cast<ptrdiff_t>(span.begin),
                                lines_.begin() + static_cast<ptrdiff_t>(span.end)});
      loops.push_back(std::move(loop));
    }
  }

private:
  struct Span {
    std::string label;
    size_t begin, end;
  };
  std::string name_;
  std::vector<Line> lines_;
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
    Line instruction;
    if (size_t comment = line.find('#'); comment != std::string::npos) {
      instruction.read_comment(line.substr(comment));
      line.resize(comment);
    }
    size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos) continue;
    line = line.substr(first, line.find_last_not_of(" \t") + 1 - first);
    bool label = line.back() == ':';
    if (label && line[0] != '.') {
      function.append_innermost(loops);
      function = FunctionLines(line.substr(0, line.size() - 1));
    } else if (line[0] != '.' || (label && starts_with(line, ".LBB"))) {
      instruction.text = line;
      function.add(instruction);
    }
  }
  function.append_innermost(loops);
  return loops;
}

} // namespace firn::test
