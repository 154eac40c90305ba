// The attribute dictionary: lookup, typed reads, text.
#include "compiler/graph/attribute.h"

#include "compiler/support/diagnostic.h"
#include "compiler/support/text_scanner.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace firn {
namespace {

std::string print_double(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  std::string printed = text;
  if (printed.find_first_of(".e") == std::string::npos) printed += ".0";
  return printed;
}

template <class T, class Print> std::string print_list(const std::vector<T>& values, Print print) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += (i ? ", " : "") + print(values[i]);
  return text + "]";
}

std::string print_attribute(const Attribute& attribute) {
  if (auto* v = std::get_if<int64_t>(&attribute)) return std::to_string(*v);
  if (auto* v = std::get_if<double>(&attribute)) return print_double(*v);
  if (auto* v = std::get_if<bool>(&attribute)) return *v ? "true" : "false";
  if (auto* v = std::get_if<Word>(&attribute)) return v->text;
  if (auto* v = std::get_if<std::string>(&attribute)) return quote(*v);
  if (auto* v = std::get_if<std::vector<int64_t>>(&attribute))
    return print_list(*v, [](int64_t i) { return std::to_string(i); });
  if (auto* v = std::get_if<std::vector<double>>(&attribute))
    return v->empty() ? "[.]" : print_list(*v, print_double);
  if (auto* v = std::get_if<DType>(&attribute)) return std::string(dtype_name(*v));
  if (auto* v = std::get_if<Window>(&attribute)) return v->to_string();
  return "type " + std::get_if<Type>(&attribute)->to_string();
}

// "3x3"-like text of one number per dim; empty when all have the default.
std::string print_sizes(const std::vector<WindowDim>& dims, const char* keyword, int64_t WindowDim::*field) {
  bool needed = std::any_of(dims.begin(), dims.end(), [&](const WindowDim& dim) { return dim.*field != 1; });
  if (!needed) return "";
  std::string text = std::string(" ") + keyword + " ";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? "x" : "") + std::to_string(dims[i].*field);
  return text;
}

template <class T> const T& get(const Attributes& attributes, std::string_view name) {
  const Attribute* found = attributes.find(name);
  FIRN_CHECK(found, "attribute '" + std::string(name) + "' is missing");
  const T* value = std::get_if<T>(found);
  FIRN_CHECK(value, "attribute '" + std::string(name) + "' has another kind");
  return *value;
}

} // namespace

Attribute::Attribute(const Attribute&) = default;
Attribute::Attribute(Attribute&&) noexcept = default;
Attribute& Attribute::operator=(const Attribute&) = default;
Attribute& Attribute::operator=(Attribute&&) noexcept = default;
Attribute::~Attribute() = default;

Attributes::Attributes(std::initializer_list<std::pair<std::string, Attribute>> entries) {
  for (const auto& [name, value] : entries) set(name, value);
}
Attributes::Attributes(const Attributes&) = default;
Attributes::Attributes(Attributes&&) noexcept = default;
Attributes& Attributes::operator=(const Attributes&) = default;
Attributes& Attributes::operator=(Attributes&&) noexcept = default;
Attributes::~Attributes() = default;

std::string Window::to_string() const {
  std::string text;
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? "x" : "") + std::to_string(dims[i].size);
  bool padded =
      std::any_of(dims.begin(), dims.end(), [](const WindowDim& d) { return d.pad_low || d.pad_high; });
  if (padded) {
    text += " pad ";
    for (size_t i = 0; i < dims.size(); ++i)
      text += (i ? "x" : "") + std::to_string(dims[i].pad_low) + "_" + std::to_string(dims[i].pad_high);
  }
  text += print_sizes(dims, "stride", &WindowDim::stride);
  text += print_sizes(dims, "dilate", &WindowDim::dilation);
  text += print_sizes(dims, "input_dilate", &WindowDim::input_dilation);
  return text;
}

void Attributes::set(std::string_view name, Attribute value) {
  auto at = std::lower_bound(entries_.begin(), entries_.end(), name,
                             [](const auto& entry, std::string_view key) { return entry.first < key; });
  if (at != entries_.end() && at->first == name)
    at->second = std::move(value);
  else
    entries_.insert(at, {std::string(name), std::move(value)});
}

void Attributes::erase(std::string_view name) {
  std::erase_if(entries_, [&](const auto& entry) { return entry.first == name; });
}

const Attribute* Attributes::find(std::string_view name) const {
  for (const auto& [key, value] : entries_)
    if (key == name) return &value;
  return nullptr;
}

int64_t Attributes::integer(std::string_view name) const {
  return get<int64_t>(*this, name);
}
int64_t Attributes::integer(std::string_view name, int64_t fallback) const {
  return has(name) ? get<int64_t>(*this, name) : fallback;
}
double Attributes::number(std::string_view name, double fallback) const {
  return has(name) ? get<double>(*this, name) : fallback;
}
bool Attributes::flag(std::string_view name, bool fallback) const {
  return has(name) ? get<bool>(*this, name) : fallback;
}
const std::string& Attributes::word(std::string_view name) const {
  return get<Word>(*this, name).text;
}
std::string Attributes::word(std::string_view name, std::string_view fallback) const {
  return has(name) ? get<Word>(*this, name).text : std::string(fallback);
}
const std::string& Attributes::text(std::string_view name) const {
  return get<std::string>(*this, name);
}
const std::vector<int64_t>& Attributes::ints(std::string_view name) const {
  return get<std::vector<int64_t>>(*this, name);
}
const std::vector<double>& Attributes::numbers(std::string_view name) const {
  return get<std::vector<double>>(*this, name);
}
const Window& Attributes::window() const {
  return get<Window>(*this, "window");
}
const Type& Attributes::type(std::string_view name) const {
  return get<Type>(*this, name);
}

std::string Attributes::to_string() const {
  if (entries_.empty()) return "";
  std::string text = "{";
  for (size_t i = 0; i < entries_.size(); ++i)
    text += (i ? ", " : "") + entries_[i].first + " = " + print_attribute(entries_[i].second);
  return text + "}";
}

} // namespace firn
