// Texts of progress.
#include "tools/firn/train_progress.h"

#include <cstdio>
#include <unistd.h>

namespace firn::tool {
namespace {

constexpr auto kBetweenLines = std::chrono::milliseconds(100);

// "3 s", "12 min 5 s", "2 h 7 min".
std::string duration_text(double seconds) {
  const auto whole = static_cast<long long>(seconds + 0.5);
  const long long minutes = whole / 60, hours = minutes / 60;
  if (hours > 0) return std::to_string(hours) + " h " + std::to_string(minutes % 60) + " min";
  if (minutes > 0) return std::to_string(minutes) + " min " + std::to_string(whole % 60) + " s";
  return std::to_string(whole) + " s";
}

} // namespace

TrainProgress::TrainProgress(bool quiet) : is_quiet_(quiet), is_rewritten_(!quiet && ::isatty(2) != 0) {}

void TrainProgress::note(const std::string& line) {
  if (is_quiet_) return;
  clear();
  std::fprintf(stderr, "%s\n", line.c_str());
}

void TrainProgress::show_step(const driver::StepReport& report) {
  const auto now = std::chrono::steady_clock::now();
  if (!is_rewritten_ || (has_line_ && now - shown_ < kBetweenLines)) return;
  shown_ = now;
  has_line_ = true;
  std::fprintf(stderr, "\r\033[Kepoch %lld/%lld, step %lld/%lld: loss %.4g, %s left",
               static_cast<long long>(report.epoch), static_cast<long long>(report.epochs),
               static_cast<long long>(report.step), static_cast<long long>(report.steps), report.loss,
               duration_text(report.seconds_left).c_str());
}

void TrainProgress::show_epoch(const driver::EpochReport& report) {
  if (is_quiet_) return;
  clear();
  std::fprintf(stderr, "epoch %lld/%lld: loss %.6g", static_cast<long long>(report.epoch),
               static_cast<long long>(report.epochs), report.loss);
  if (report.validation_loss) std::fprintf(stderr, ", validation loss %.6g", *report.validation_loss);
  if (report.accuracy) std::fprintf(stderr, ", accuracy %.2f %%", 100 * *report.accuracy);
  std::fprintf(stderr, ", %.1f s\n", report.seconds);
}

void TrainProgress::clear() {
  if (has_line_) std::fputs("\r\033[K", stderr);
  has_line_ = false;
}

} // namespace firn::tool
