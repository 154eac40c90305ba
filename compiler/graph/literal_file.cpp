// The side file of large literals: its head line, then per literal a line "hash type size", padded so that
// the bytes after it are aligned. Strings are each prefixed by their 8-byte length.
#include "compiler/graph/hlo_text.h"

#include "compiler/support/text_scanner.h"

namespace firn {
namespace {

constexpr std::string_view kSideFileHead = "firn literals 1\n";
constexpr size_t kAlignment = 64; // bytes: mapped literals are read as elements in place

void collect_literals(const Region& region, std::map<std::string, LiteralRef>& found) {
  for (const auto& instruction : region.instructions()) {
    const LiteralRef& literal = instruction->literal();
    if (literal && !literal->is_opaque() && literal->num_elements() > kInlineLiteralElements)
      found.emplace(literal->hash(), literal);
    for (int i = 0; i < instruction->num_regions(); ++i) collect_literals(instruction->region(i), found);
  }
}

std::optional<std::vector<std::string>> split_strings(std::string_view content, size_t count) {
  std::vector<std::string> strings;
  while (strings.size() < count) {
    uint64_t length = 0;
    if (content.size() < sizeof length) return std::nullopt;
    std::memcpy(&length, content.data(), sizeof length);
    content.remove_prefix(sizeof length);
    if (length > content.size()) return std::nullopt;
    strings.emplace_back(content.substr(0, length));
    content.remove_prefix(length);
  }
  return strings;
}

} // namespace

std::string write_literals(const Module& module) {
  std::map<std::string, LiteralRef> found;
  for (const auto& function : module.functions()) collect_literals(function->body(), found);
  std::string out(kSideFileHead);
  for (const auto& [hash, literal] : found) {
    std::string content;
    if (literal->dtype() == DType::String) {
      for (const std::string& text : literal->string_values()) {
        uint64_t size = text.size();
        content.append(reinterpret_cast<const char*>(&size), sizeof size);
        content += text;
      }
    } else {
      content.assign(reinterpret_cast<const char*>(literal->plain_bytes().data()),
                     literal->plain_bytes().size());
    }
    out += hash + " " + literal->type().to_string() + " " + std::to_string(content.size());
    out.append(kAlignment - 1 - out.size() % kAlignment, ' ');
    out += "\n" + content;
  }
  return out;
}

Expected<LiteralTable> read_literals(std::shared_ptr<const MappedFile> file) {
  auto broken = [&] { return model_error(file->path() + ": not a side file of literals, or cut short"); };
  std::string_view text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  if (!text.starts_with(kSideFileHead)) return broken();
  LiteralTable table;
  size_t at = kSideFileHead.size();
  while (at < text.size()) {
    size_t end = text.find('\n', at);
    if (end == text.npos) return broken();
    TextScanner line(file->path(), text.substr(at, end - at));
    std::string hash(line.word_with(""));
    auto dtype = parse_dtype(line.word());
    std::vector<int64_t> dims;
    int64_t value = 0, size = 0;
    if (!dtype || !line.expect("[")) return broken();
    while (line.integer(value)) {
      dims.push_back(value);
      line.accept(",");
    }
    auto num_elements = checked_num_elements(dims);
    if (!line.expect("]") || !line.integer(size) || !num_elements) return broken();
    at = end + 1;
    if (size < 0 || static_cast<size_t>(size) > text.size() - at) return broken();
    auto count = static_cast<size_t>(*num_elements);
    if (*dtype == DType::String) {
      auto strings = split_strings(text.substr(at, static_cast<size_t>(size)), count);
      if (!strings) return broken();
      table[hash] = Literal::strings(std::move(dims), std::move(*strings));
    } else {
      if (byte_size(*dtype, count) != static_cast<size_t>(size)) return broken();
      table[hash] = Literal::mapped(*dtype, std::move(dims), file, at);
    }
    at += static_cast<size_t>(size);
  }
  return table;
}

} // namespace firn
