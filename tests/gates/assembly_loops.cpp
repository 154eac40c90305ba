// See assembly_loops.h.
#include "tests/gates/assembly_loops.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>

namespace firn::test {
namespace {

bool starts_with(const std::string& text, const char* prefix) {
  return text.rfind(prefix, 0) == 0;
}

// An instruction, and whether the compiler's comment calls it a spill or a reload. Accesses to arrays on the
// stack are neither.
struct Line {
  std::string text;
  bool vector = false, spills = false, reloads = false;

  void read_comment(const std::string& comment) {
    for (const char* size : {"16-byte ", "32-byte ", "64-byte "})
      vector |= comment.find(size) != std::string::npos;
    spills = comment.find("Spill") != std::string::npos;
    reloads = comment.find("Reload") != std::string::npos;
  }
  // "-128(%rsp)" of a spill or reload.
  std::string stack_slot() const {
    size_t address = std::min(text.find("(%rsp"), text.find("(%rbp"));
    if (address == std::string::npos) return "";
    size_t before = address > 0 ? text.find_last_of(" \t,", address - 1) : std::string::npos;
    size_t begin = before == std::string::npos ? 0 : before + 1;
    return text.substr(begin, text.find(')', address) + 1 - begin);
  }
};

// One vector instruction taken apart.
struct VectorInstruction {
  std::string mnemonic, operands;
  size_t address = std::string::npos,
         last = std::string::npos; // places of '(' and of the comma before the destination

  // Takes an instruction apart; false if it is no vector instruction.
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
  // CPUs without FMAs have an instruction for the product and one for the sum.
  bool is_fma() const { return starts_with(mnemonic, "vfmadd") || mnemonic == "mulps"; }
  bool is_sum() const { return starts_with(mnemonic, "vfmadd") || mnemonic == "addps"; }
  bool broadcasts_element() const {
    if (!reads() || operands.find("(%rip)") != std::string::npos) return false;
    return starts_with(mnemonic, "vbroadcast") || mnemonic == "movss" ||
           operands.find("{1to") != std::string::npos;
  }
  std::string destination() const {
    return operands.substr(operands.find('%', last == std::string::npos ? 0 : last)).substr(0, 6);
  }
};

void count_vectors(AssemblyLoop& loop, const std::vector<Line>& lines) {
  std::set<std::string> accumulators;
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
  }
  loop.accumulators = static_cast<int>(accumulators.size());
}

void count_spills(AssemblyLoop& loop, const std::vector<Line>& lines) {
  std::set<std::string> stored;
  for (const Line& line : lines)
    if (line.spills) stored.insert(line.stack_slot());
  for (const Line& line : lines) {
    if (!line.spills && !line.reloads) continue;
    if (!line.spills && !stored.count(line.stack_slot())) {
      loop.stack_reads += line.vector;
      continue;
    }
    ++(line.vector ? loop.spills : loop.scalar_spills);
    if (loop.first_spill.empty()) loop.first_spill = line.text;
  }
}

// The text behind `what` in a comment, up to a blank.
std::string word_behind(const std::string& comment, const char* what) {
  size_t at = comment.find(what);
  if (at == std::string::npos) return "";
  at += std::strlen(what);
  return comment.substr(at, comment.find_first_of(" \t", at) - at);
}

// One function's blocks, sorted to loops by the comments behind their labels: "in Loop: Header=BB0_2
// Depth=2", or of headers "Parent Loop BB0_1 Depth=1" for all loops around, outermost first, and "This Loop
// Header".
class FunctionLines {
public:
  explicit FunctionLines(std::string name) : name_(std::move(name)) {}

  void start_block(const std::string& label) { label_ = label, loop_.clear(), parent_.clear(); }
  void read_comment(const std::string& comment) {
    if (std::string header = word_behind(comment, "Header=BB"); !header.empty()) loop_ = header;
    if (std::string parent = word_behind(comment, "Parent Loop BB"); !parent.empty()) parent_ = parent;
    if (comment.find("Loop Header: Depth") == std::string::npos) return;
    loop_ = label_;
    loops_[find(label_)].parent = parent_;
  }
  void add(const Line& line) {
    if (!loop_.empty()) loops_[find(loop_)].lines.push_back(line);
  }

  void append_loops(std::vector<AssemblyLoop>& loops) const {
    for (const Blocks& blocks : loops_) {
      AssemblyLoop loop;
      loop.function = name_;
      loop.label = ".LBB" + blocks.header;
      loop.height = height(blocks);
      for (const Line& line : blocks.lines) loop.lines.push_back(line.text);
      count_vectors(loop, blocks.lines);
      count_spills(loop, blocks.lines);
      loops.push_back(std::move(loop));
    }
  }

private:
  struct Blocks {
    std::string header, parent;
    std::vector<Line> lines;
  };
  size_t find(const std::string& header) {
    size_t i = 0;
    while (i < loops_.size() && loops_[i].header != header) ++i;
    if (i == loops_.size()) loops_.push_back({header, "", {}});
    return i;
  }
  int height(const Blocks& blocks) const {
    int max = 0;
    for (const Blocks& other : loops_)
      if (other.parent == blocks.header) max = std::max(max, height(other) + 1);
    return max;
  }

  std::string name_, label_, loop_, parent_; // the function; block, loop and parent loop of the current line
  std::vector<Blocks> loops_;
};

} // namespace

std::string AssemblyLoop::to_string() const {
  std::ostringstream text;
  text << function << " " << label << ": " << fmas << " FMAs into " << accumulators << " accumulators, "
       << loads << " loads, " << spills << " spills, " << stack_reads << " stack reads";
  return text.str();
}

std::vector<AssemblyLoop> loops_of(const std::string& assembly) {
  std::vector<AssemblyLoop> loops;
  FunctionLines function("");
  std::istringstream stream(assembly);
  for (std::string line; std::getline(stream, line);) {
    Line instruction;
    std::string comment;
    if (size_t at = line.find('#'); at != std::string::npos) {
      comment = line.substr(at);
      instruction.read_comment(comment);
      line.resize(at);
    }
    size_t first = line.find_first_not_of(" \t");
    line = first == std::string::npos ? "" : line.substr(first, line.find_last_not_of(" \t") + 1 - first);
    bool label = !line.empty() && line.back() == ':';
    if (label && line[0] != '.') {
      function.append_loops(loops);
      function = FunctionLines(line.substr(0, line.size() - 1));
    } else if (label && starts_with(line, ".LBB")) {
      function.start_block(line.substr(4, line.size() - 5));
    } else if (line.empty() && starts_with(comment, "# %bb.")) {
      function.start_block("");
    } else if (!line.empty() && line[0] != '.') {
      instruction.text = line;
      function.add(instruction);
      continue;
    }
    function.read_comment(comment);
  }
  function.append_loops(loops);
  return loops;
}

std::vector<AssemblyLoop> innermost_loops(const std::string& assembly) {
  std::vector<AssemblyLoop> loops = loops_of(assembly);
  loops.erase(std::remove_if(loops.begin(), loops.end(), [](const AssemblyLoop& l) { return l.height > 0; }),
              loops.end());
  return loops;
}

} // namespace firn::test
