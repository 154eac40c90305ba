// See mutants.h.
#include "tests/gpu/mutants.h"

#include <map>
#include <regex>
#include <sstream>
#include <string_view>

namespace firn::test {
namespace {

using Lines = std::vector<std::string>;

std::string join(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

class Mutator {
public:
  explicit Mutator(const std::string& ptx) {
    std::istringstream stream(ptx);
    for (std::string line; std::getline(stream, line);) lines_.push_back(line);
  }

  std::vector<Mutant> run() {
    find_labels();
    for (at_ = 0; at_ < lines_.size(); ++at_) {
      const std::string& line = lines_[at_];
      std::smatch m;
      if (line.find("bar.sync") != std::string::npos || line.find("barrier.sync") != std::string::npos)
        add(Taken::Barrier, "", "");
      else if (line.find("cp.async.wait") != std::string::npos)
        add(Taken::Wait, "", "");
      else if (std::regex_search(line, m, guard_) && leads_forward(m[3]))
        add(Taken::Guard, "", "@" + m[1].str() + m[2].str() + " trap;");
      else if (std::regex_search(line, m, minimum_))
        add_minimum(m);
      else if (std::regex_search(line, m, both_))
        add_both(m);
    }
    return std::move(mutants_);
  }

private:
  void find_labels() {
    const std::regex label(R"(^(\$\S+):)");
    std::smatch m;
    for (size_t i = 0; i < lines_.size(); ++i)
      if (std::regex_search(lines_[i], m, label)) labels_[m[1]] = i;
  }
  bool leads_forward(const std::string& label) const {
    auto found = labels_.find(label);
    return found != labels_.end() && found->second > at_;
  }

  // The module with other text in place of the line.
  std::string with(const std::string& other) const {
    Lines changed = lines_;
    changed[at_] = other;
    return join(changed);
  }
  void add(Taken taken, const std::string& other, const std::string& probe) {
    mutants_.push_back(
        {taken, at_ + 1, lines_[at_], with(other), probe.empty() ? "" : with(probe + " " + lines_[at_])});
  }
  void add_minimum(const std::smatch& m) {
    const std::string type = m[1], to = m[2], bits = "b" + type.substr(1);
    for (int kept : {3, 4}) {
      const std::string own = m[static_cast<size_t>(kept)], other = m[static_cast<size_t>(7 - kept)];
      add(Taken::Minimum, "mov." + bits + " " + to + ", " + own + ";",
          "{ .reg .pred %other; setp.gt." + type + " %other, " + own + ", " + other + "; @%other trap; }");
    }
  }
  void add_both(const std::smatch& m) {
    for (int kept : {2, 3}) {
      const std::string own = m[static_cast<size_t>(kept)], other = m[static_cast<size_t>(5 - kept)];
      // The other condition decides if it is false where this one holds.
      add(Taken::Condition, "mov.pred " + m[1].str() + ", " + own + ";",
          "{ .reg .pred %other; not.pred %other, " + other + "; and.pred %other, %other, " + own +
              "; @%other trap; }");
    }
  }

  Lines lines_;
  size_t at_ = 0;
  std::map<std::string, size_t> labels_;
  std::vector<Mutant> mutants_;
  const std::regex guard_{R"(^\s*@(!?)(%p\d+)\s+bra\s+(\$\S+);)"},
      minimum_{R"(^\s*min\.([su](?:16|32|64))\s+(%\w+), (%\w+), ([^;]+);)"},
      both_{R"(^\s*and\.pred\s+(%p\d+), (%p\d+), (%p\d+);)"};
};

} // namespace

std::string_view word(Taken taken) {
  constexpr std::string_view kWords[] = {"barrier", "wait", "guard", "minimum", "condition"};
  return kWords[static_cast<size_t>(taken)];
}

std::vector<Mutant> mutants_of(const std::string& ptx) {
  return Mutator(ptx).run();
}

} // namespace firn::test
