// Slot expansion and formatting; see text_template.h.
#include "compiler/artifact/text_template.h"

#include "compiler/support/diagnostic.h"

#include <array>
#include <cstdio>

namespace firn::artifact {
namespace {

std::string indented(const std::string& text, size_t columns) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    result += text[i];
    const bool starts_filled_line = text[i] == '\n' && i + 1 < text.size() && text[i + 1] != '\n';
    if (starts_filled_line) result.append(columns, ' ');
  }
  return result;
}

std::string scaled(double value, const char* units) {
  size_t unit = 0;
  while (value >= 999.95 && units[unit + 1] != '\0') {
    value /= 1000;
    ++unit;
  }
  std::array<char, 40> buffer;
  std::snprintf(buffer.data(), buffer.size(), unit == 0 ? "%.0f " : "%.1f ", value);
  std::string result = buffer.data();
  if (unit > 0) result += units[unit];
  return result;
}

} // namespace

std::string expand_template(std::string_view text, const Slots& slots) {
  std::string result;
  size_t line_start = 0; // in result
  while (!text.empty()) {
    const size_t open = text.find("{{");
    const std::string_view plain = text.substr(0, open);
    result += plain;
    if (const size_t newline = plain.rfind('\n'); newline != std::string_view::npos)
      line_start = result.size() - (plain.size() - newline - 1);
    if (open == std::string_view::npos) break;
    const size_t close = text.find("}}", open);
    FIRN_CHECK(close != std::string_view::npos, "template slot without end");
    const std::string_view name = text.substr(open + 2, close - open - 2);
    const auto slot = slots.find(name);
    FIRN_CHECK(slot != slots.end(), "template slot without text: " + std::string(name));
    text = text.substr(close + 2);
    const bool starts_line = result.find_first_not_of(' ', line_start) == std::string::npos;
    const bool alone = starts_line && !text.empty() && text[0] == '\n';
    if (slot->second.empty() && alone) {
      result.resize(line_start);
      text = text.substr(1);
      continue;
    }
    const size_t columns =
        result.find_first_not_of(' ', line_start) == std::string::npos ? result.size() - line_start : 0;
    result += indented(slot->second, columns);
    if (const size_t newline = slot->second.rfind('\n'); newline != std::string::npos)
      line_start = result.rfind('\n') + 1;
  }
  return result;
}

std::string hex_text(uint64_t value) {
  std::array<char, 24> buffer;
  std::snprintf(buffer.data(), buffer.size(), "0x%llx", static_cast<unsigned long long>(value));
  return buffer.data();
}

std::string with_separators(int64_t value) {
  std::string digits = std::to_string(value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string human_bytes(int64_t bytes) {
  return scaled(static_cast<double>(bytes), " kMGT") + "B";
}

std::string human_count(int64_t count) {
  return scaled(static_cast<double>(count), " kMGT");
}

std::string c_string(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) {
      std::array<char, 8> escape;
      std::snprintf(escape.data(), escape.size(), "\\%03o", byte);
      result += escape.data();
    } else {
      if (c == '"' || c == '\\' || c == '?') result += '\\';
      result += c;
    }
  }
  return result + "\"";
}

std::string comment_text(std::string_view text) {
  std::string result;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool printable = byte >= 0x20 && byte < 0x7f && c != '\\';
    const bool would_delimit =
        !result.empty() && ((result.back() == '*' && c == '/') || (result.back() == '/' && c == '*'));
    if (would_delimit) result += ' ';
    result += printable ? c : '?';
  }
  return result;
}

std::string_view base_name(std::string_view path) {
  const size_t slash = path.find_last_of("/\\");
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

} // namespace firn::artifact
