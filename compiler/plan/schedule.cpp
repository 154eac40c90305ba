// Signatures, databases and explanations as text.
#include "compiler/plan/schedule.h"

#include "compiler/graph/fusion.h"
#include "compiler/plan/roots.h"
#include "compiler/support/mapped_file.h"
#include "compiler/support/text_scanner.h"

#include <cstdio>

namespace firn::plan {
namespace {

constexpr std::string_view kArrow = " => ";
constexpr std::string_view kVersionWord = "firn-schedules ";
const char kHeader[] = "firn-schedules 1";

std::string trimmed(std::string_view text) {
  size_t first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
  return first == std::string_view::npos ? "" : std::string(text.substr(first, last - first + 1));
}

// The operations of a fusion: "[multiply,add]".
std::string members_text(const Instruction& instruction) {
  if (!instruction.is(Opcode::Fusion)) return "";
  std::string text;
  for (const Instruction* member : fusion_members(instruction))
    text += (text.empty() ? "" : ",") + std::string(opcode_name(member->opcode()));
  return "[" + text + "]";
}

// Whether the first line says that this is a database, of the version that is read here.
Result check_header(const std::string& place, const std::string& line) {
  if (line == kHeader) return {};
  if (line.starts_with(kVersionWord))
    return usage_error(place + ": the schedule database is of version " + line.substr(kVersionWord.size()) +
                       ", this Firn reads version 1");
  return usage_error(place + ": a schedule database starts with the line '" + kHeader + "'" +
                     (line.empty() ? "" : ", found '" + line + "'"));
}

} // namespace

std::string kernel_signature(const Instruction& instruction, const Machine& target) {
  std::optional<KernelRoot> root = find_contraction(instruction);
  if (!root) root = find_pooling(instruction);
  const Instruction& op = root ? *root->op : instruction;
  std::string text = target.processor + " " + std::string(opcode_name(op.opcode())) + members_text(op) + "(";
  for (int i = 0; i < op.num_operands(); ++i) text += (i ? ", " : "") + op.operand(i).type().to_string();
  Attributes own = op.attributes();
  own.erase("plan");
  std::string attributes = own.to_string();
  return text + ") " + attributes + (attributes.empty() ? "" : " ") + "-> " + instruction.type().to_string();
}

Expected<ScheduleDatabase> ScheduleDatabase::read(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  std::span<const std::byte> bytes = (*file)->bytes();
  return parse(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Expected<ScheduleDatabase> ScheduleDatabase::parse(const std::string& name, std::string_view text) {
  ScheduleDatabase database;
  bool has_header = false;
  for (int number = 1; !text.empty(); ++number) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string line = trimmed(text.substr(0, std::min(end, text.substr(0, end).find('#'))));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    std::string place = name + ":" + std::to_string(number);
    if (!has_header) {
      if (Result is_database = check_header(place, line); !is_database) return is_database.error();
      has_header = true;
      continue;
    }
    size_t arrow = line.rfind(kArrow);
    if (arrow == std::string::npos)
      return usage_error(place + ": wanted 'CPU SIGNATURE => PLAN', found '" + line + "'");
    auto plan = parse_plan_request(place, std::string_view(line).substr(arrow + kArrow.size()));
    if (!plan) return usage_error(plan.error().message);
    std::string signature = trimmed(std::string_view(line).substr(0, arrow));
    if (auto earlier = database.lines_.find(signature); earlier != database.lines_.end())
      database.replaced_.push_back(earlier->second.place + ": the kernel has another plan at " + place +
                                   ", which is taken");
    database.lines_[signature] = {place, std::move(*plan)};
  }
  if (!has_header) return check_header(name + ":1", "").error();
  return database;
}

const PlanRequest* ScheduleDatabase::find(const std::string& signature) const {
  auto found = lines_.find(signature);
  if (found == lines_.end()) return nullptr;
  found->second.is_used = true;
  return &found->second.plan;
}

std::vector<std::string> ScheduleDatabase::idle_lines() const {
  std::vector<std::string> texts = replaced_;
  for (const auto& [signature, line] : lines_)
    if (!line.is_used) texts.push_back(line.place + ": the model has no kernel " + signature);
  return texts;
}

std::string explanation_text(const std::vector<Explanation>& explanations) {
  std::string text = std::string(kHeader) + "\n";
  for (const Explanation& explanation : explanations) {
    text += (explanation.location.empty() ? "" : "# " + explanation.location + "\n") + explanation.signature +
            std::string(kArrow) + to_string(explanation.chosen) + "\n";
    if (!explanation.code_of.empty())
      text += "#   takes little time: the code of all CPUs is that for " + explanation.code_of + ", " +
              to_string(*explanation.plan_of_code) + "\n";
    if (explanation.overruled) text += "#   from the schedule database\n";
    if (!explanation.refused.empty())
      text += "#   the schedule database's plan is not possible: " + explanation.refused + "\n";
    for (const Candidate& candidate : explanation.candidates) {
      char cycles[48];
      std::snprintf(cycles, sizeof cycles, "#   %14.0f cycles  ", candidate.cycles);
      text += cycles + to_string(candidate.plan) +
              (candidate.note.empty() ? "" : "  (" + candidate.note + ")") + "\n";
    }
  }
  return text;
}

} // namespace firn::plan
