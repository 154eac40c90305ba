// Schedules as text.
#include "compiler/plan/schedule.h"

#include "compiler/support/mapped_file.h"
#include "compiler/support/text_scanner.h"

#include <cstdio>

namespace firn::plan {
namespace {

constexpr std::string_view kArrow = " => ";

std::string pair_text(int64_t a, int64_t b) {
  return std::to_string(a) + "x" + std::to_string(b);
}

// "14x2"; both at least 1 and at most `limit`.
bool read_pair(TextScanner& scanner, int64_t limit, int& first, int& second) {
  std::string word(scanner.word_with(""));
  size_t cross = word.find('x');
  char* end = nullptr;
  long a = std::strtol(word.c_str(), &end, 10), b = 0;
  if (cross != std::string::npos && end == word.c_str() + cross)
    b = std::strtol(word.c_str() + cross + 1, &end, 10);
  if (cross == std::string::npos || *end || a < 1 || b < 1 || a > limit || b > limit)
    return scanner.fail("wanted two sizes from 1 to " + std::to_string(limit) + " such as 4x2, found '" +
                        word + "'");
  first = static_cast<int>(a);
  second = static_cast<int>(b);
  return true;
}

bool read_direct(TextScanner& scanner, Schedule& schedule) {
  if (scanner.accept("tile") && !read_pair(scanner, 64, schedule.rows, schedule.vectors)) return false;
  int64_t phases = 1;
  if (scanner.accept("phases") &&
      (!scanner.integer(phases) || (phases != 1 && phases != 2 && phases != 4 && phases != 8)))
    return scanner.fail("phases are 1, 2, 4 or 8");
  schedule.phases = static_cast<int>(phases);
  int64_t depth = 1;
  if (scanner.accept("depth") && (!scanner.integer(depth) || (depth != 1 && depth != 2 && depth != 4)))
    return scanner.fail("depths are 1, 2 or 4");
  schedule.depth = static_cast<int>(depth);
  bool columns = scanner.accept("columns");
  if (columns || scanner.accept("rows")) {
    schedule.columns_outermost = columns;
    return scanner.expect("outermost");
  }
  return true;
}

bool read_winograd(TextScanner& scanner, Schedule& schedule) {
  if (!read_pair(scanner, 4, schedule.outputs_high, schedule.outputs_wide)) return false;
  if (scanner.accept("tile") && !read_pair(scanner, 64, schedule.rows, schedule.vectors)) return false;
  if (scanner.accept("batch") && (!scanner.integer(schedule.batch) || schedule.batch < 1))
    return scanner.fail("a batch has at least one tile");
  return true;
}

bool read_schedule(TextScanner& scanner, Schedule& schedule) {
  if (scanner.accept("winograd")) {
    schedule.algorithm = Schedule::Algorithm::Winograd;
    return read_winograd(scanner, schedule);
  }
  return scanner.expect("direct") && read_direct(scanner, schedule);
}

std::string trimmed(std::string_view text) {
  size_t first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
  return first == std::string_view::npos ? "" : std::string(text.substr(first, last - first + 1));
}

} // namespace

std::string Schedule::to_string() const {
  std::string text =
      algorithm == Algorithm::Winograd ? "winograd " + pair_text(outputs_high, outputs_wide) : "direct";
  if (rows > 0) text += " tile " + pair_text(rows, vectors);
  if (algorithm == Algorithm::Winograd && batch > 0) text += " batch " + std::to_string(batch);
  if (phases > 1) text += " phases " + std::to_string(phases);
  if (depth > 1) text += " depth " + std::to_string(depth);
  if (columns_outermost) text += *columns_outermost ? " columns outermost" : " rows outermost";
  return text;
}

std::string contraction_signature(const Instruction& contraction, const Type& result,
                                  const TargetMachine& target) {
  std::string text = target.cpu + " " + std::string(opcode_name(contraction.opcode())) + "(";
  text += contraction.operand(0).type().to_string() + ", " + contraction.operand(1).type().to_string() + ") ";
  Attributes own = contraction.attributes();
  own.erase("plan");
  std::string attributes = own.to_string();
  return text + attributes + (attributes.empty() ? "" : " ") + "-> " + result.to_string();
}

Expected<ScheduleDatabase> ScheduleDatabase::read(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  std::span<const std::byte> bytes = (*file)->bytes();
  return parse(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Expected<ScheduleDatabase> ScheduleDatabase::parse(const std::string& name, std::string_view text) {
  ScheduleDatabase database;
  for (int number = 1; !text.empty(); ++number) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string line = trimmed(text.substr(0, std::min(end, text.substr(0, end).find('#'))));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    size_t arrow = line.rfind(kArrow);
    if (arrow == std::string::npos)
      return usage_error(name + ":" + std::to_string(number) +
                         ": wanted 'CPU SIGNATURE => SCHEDULE', found '" + line + "'");
    TextScanner scanner(name + ":" + std::to_string(number),
                        std::string_view(line).substr(arrow + kArrow.size()));
    Schedule schedule;
    if (!read_schedule(scanner, schedule) ||
        (!scanner.at_end() && !scanner.fail("expected the end of the line")))
      return usage_error(scanner.error().message);
    database.schedules_[trimmed(std::string_view(line).substr(0, arrow))] = schedule;
  }
  return database;
}

const Schedule* ScheduleDatabase::find(const std::string& signature) const {
  auto found = schedules_.find(signature);
  return found == schedules_.end() ? nullptr : &found->second;
}

std::string explanation_text(const std::vector<Explanation>& explanations) {
  std::string text;
  for (const Explanation& explanation : explanations) {
    text += (explanation.location.empty() ? "" : "# " + explanation.location + "\n") + explanation.signature +
            std::string(kArrow) + explanation.chosen.to_string() + "\n";
    if (explanation.overruled) text += "#   from the schedule database\n";
    for (const Explanation::Candidate& candidate : explanation.candidates) {
      char line[160];
      std::snprintf(line, sizeof line, "#   %14.0f cycles  %s", candidate.cycles,
                    candidate.schedule.to_string().c_str());
      text += line + (candidate.note.empty() ? "" : "  (" + candidate.note + ")") + "\n";
    }
  }
  return text;
}

} // namespace firn::plan
