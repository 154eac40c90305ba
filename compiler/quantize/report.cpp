// The report: a table for the terminal and the same as one page of HTML.
#include "compiler/quantize/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace firn::quantize {
namespace {

const char* precision_name(Precision precision) {
  switch (precision) {
  case Precision::Narrow: return "int8";
  case Precision::Wide: return "16-bit activations";
  case Precision::Float: return "f32";
  }
  FIRN_UNREACHABLE("precision");
}

template <class... Values> std::string format(const char* text, Values... values) {
  char line[512];
  std::snprintf(line, sizeof line, text, values...);
  return line;
}

std::string decibels(double relative) {
  return relative > 0 && std::isfinite(relative) ? format("%.1f dB", -20 * std::log10(relative)) : "-";
}

std::string error_text(double relative) {
  return format("%.4g", relative) + (relative > 0 ? " (" + decibels(relative) + ")" : "");
}

size_t count_of(const Report& report, Precision precision) {
  return static_cast<size_t>(
      std::count_if(report.layers.begin(), report.layers.end(),
                    [&](const LayerReport& layer) { return layer.precision == precision; }));
}

std::string time_text(const Report& report) {
  return format("%.2f of the time in f32, on ", report.quantized_cycles / report.float_cycles) +
         report.machine;
}

// The time that a layer saves in 8 bits, as a share of the predicted time of the model in floats.
std::string gain_text(const Report& report, const LayerReport& layer) {
  return layer.gain && report.float_cycles > 0 ? format("%+.1f %%", 100 * *layer.gain / report.float_cycles)
                                               : "-";
}

// Names and values of the summary.
std::vector<std::pair<std::string, std::string>> summary(const Report& report) {
  std::vector<std::pair<std::string, std::string>> rows;
  std::string layers = std::to_string(count_of(report, Precision::Narrow)) + " of " +
                       std::to_string(report.layers.size()) + " layers in int8";
  if (size_t wide = count_of(report, Precision::Wide))
    layers += ", " + std::to_string(wide) + " on 16-bit activations";
  if (size_t floats = count_of(report, Precision::Float)) layers += ", " + std::to_string(floats) + " in f32";
  rows.push_back({"layers", layers});
  rows.push_back({"error", error_text(report.error) + " of output '" + report.worst_output + "' on " +
                               std::to_string(report.samples) + " samples" +
                               (report.budget ? format(", budget %g", *report.budget) : "")});
  if (report.misses_budget()) rows.push_back({"budget", missed_budget_text(report)});
  rows.push_back({"constants", format("%lld B -> %lld B (%.2f)", static_cast<long long>(report.float_bytes),
                                      static_cast<long long>(report.quantized_bytes),
                                      static_cast<double>(report.quantized_bytes) /
                                          static_cast<double>(std::max<int64_t>(1, report.float_bytes)))});
  if (report.float_cycles > 0 && report.quantized_cycles > 0)
    rows.push_back({"predicted", time_text(report)});
  if (!report.is_faster()) rows.push_back({"time", not_faster_text(report)});
  return rows;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string cell(const std::string& text) {
  return "<td>" + escaped(text) + "</td>";
}

} // namespace

std::string missed_budget_text(const Report& report) {
  return format("the budget of %g is missed: the error is %.4g", *report.budget, report.error) +
         "; the model is written all the same";
}

std::string not_faster_text(const Report& report) {
  std::string advice = "-mcpu=NAME names the CPU that the model is for";
  if (count_of(report, Precision::Float) == report.layers.size() && !report.size)
    return "no layer is predicted to be faster in 8 bits on " + report.machine + ", and all stay in f32; " +
           advice + ", and --size quantises for bytes what gains no time";
  return "the model is predicted to be no faster: it takes " + time_text(report) + "; " + advice;
}

std::string report_text(const Report& report) {
  std::string text = report.model + " -> " + report.output + "\n";
  for (const auto& [name, value] : summary(report)) text += format("  %-10s ", name.c_str()) + value + "\n";
  size_t width = 5;
  for (const LayerReport& layer : report.layers)
    width = std::max(width, std::min<size_t>(layer.name.size(), 48));
  auto padded = [](std::string word, size_t to) {
    return word + std::string(word.size() < to ? to - word.size() : 0, ' ');
  };
  text += padded("layer", width) + "  operator           precision            error    gain     ranges\n";
  for (const LayerReport& layer : report.layers)
    text += padded(layer.name, width) + "  " + padded(layer.op, 18) + " " +
            padded(precision_name(layer.precision), 20) + " " +
            padded(layer.rules.empty() ? "-" : decibels(layer.local_error), 8) + " " +
            padded(gain_text(report, layer), 8) + " " + layer.rules +
            (layer.reason.empty() ? "" : (layer.rules.empty() ? "" : "; ") + layer.reason) + "\n";
  return text;
}

std::string report_html(const Report& report) {
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" +
                     escaped(report.output) +
                     "</title>\n<style>body{font-family:sans-serif;margin:2em}table{border-collapse:collapse}"
                     "td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #ddd}"
                     ".f32{background:#fdd}.wide{background:#ffd}</style></head><body>\n<h1>" +
                     escaped(report.model) + "</h1>\n<table>\n";
  for (const auto& [name, value] : summary(report))
    page += "<tr><th>" + name + "</th>" + cell(value) + "</tr>\n";
  page +=
      "</table>\n<h2>Layers</h2>\n<p>The error of a layer is that of its output where all before it is "
      "exact, as "
      "signal over noise; the cost is the relative error of the model's outputs where it alone is quantised, "
      "measured where a budget was "
      "missed; the gain is the part of the predicted time of the model in floats that the layer saves in 8 "
      "bits, "
      "layers that are alike taken "
      "together.</p>\n<table>\n<tr><th>layer</th><th>operator</th><th>precision</th>"
      "<th>error</th><th>cost</th><th>gain</th><th>ranges</th><th>why</th></tr>\n";
  for (const LayerReport& layer : report.layers) {
    const char* style = layer.precision == Precision::Float  ? " class=\"f32\""
                        : layer.precision == Precision::Wide ? " class=\"wide\""
                                                             : "";
    page += std::string("<tr") + style + ">" + cell(layer.name) + cell(layer.op) +
            cell(precision_name(layer.precision)) +
            cell(layer.rules.empty() ? "-" : decibels(layer.local_error)) +
            cell(layer.has_harm && !layer.rules.empty() ? format("%.2g", layer.harm) : "-") +
            cell(gain_text(report, layer)) + cell(layer.rules) + cell(layer.reason) + "</tr>\n";
  }
  return page + "</table>\n</body></html>\n";
}

} // namespace firn::quantize
