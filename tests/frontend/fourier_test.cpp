// Fourier transforms of every length against sums in f64, and when they are taken apart.
#include "tests/frontend/import_case.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <complex>
#include <numbers>

using namespace firn;
using namespace firn::test;

namespace {

using Complex = std::complex<double>;
using Signal = std::vector<Complex>;

Signal signal_of(int64_t length, bool is_real) {
  Signal signal;
  for (int64_t j = 0; j < length; ++j) {
    auto wave = [&](int64_t step) {
      return static_cast<float>(std::sin(static_cast<double>(j * step % 1009)));
    };
    signal.emplace_back(wave(7) + 0.25f, is_real ? 0.0f : wave(13));
  }
  return signal;
}

// The sum that defines a transform; not scaled.
Complex sum_at(const Signal& x, int64_t k, int64_t length, bool inverse) {
  Complex sum = 0;
  for (int64_t j = 0; j < static_cast<int64_t>(x.size()); ++j) {
    double angle = 2 * std::numbers::pi * static_cast<double>(j * k % length) / static_cast<double>(length);
    sum += x[static_cast<size_t>(j)] * std::polar(1.0, inverse ? angle : -angle);
  }
  return sum;
}

LiteralRef stored(const Signal& x, int64_t parts) {
  std::vector<double> values;
  for (const Complex& each : x) {
    values.push_back(each.real());
    if (parts == 2) values.push_back(each.imag());
  }
  return f32({1, static_cast<int64_t>(x.size()), parts}, values);
}

Imported dft(int64_t extent, int64_t parts, bool inverse, bool onesided, std::optional<int64_t> length = {}) {
  Model model;
  model.opsets = {{"", 17}};
  model.graph.inputs = {value("x", F32, {1, extent, parts})};
  Names inputs{"x"};
  if (length) {
    model.graph.initializers = {int_scalar("length", *length)};
    inputs.push_back("length");
  }
  model.graph.nodes = {
      node("DFT", inputs, {"y"}, {attribute("inverse", inverse), attribute("onesided", onesided)})};
  model.graph.outputs = {value("y", F32, {})};
  return import_model(model);
}

// The largest difference over the largest that is expected.
double error_of(const LiteralRef& got, const Signal& wanted, int64_t parts) {
  REQUIRE(got->num_elements() == static_cast<int64_t>(wanted.size()) * parts);
  double largest = 0, difference = 0;
  for (size_t k = 0; k < wanted.size(); ++k) {
    auto at = static_cast<int64_t>(k) * parts;
    Complex found(got->get_double(at), parts == 2 ? got->get_double(at + 1) : 0);
    largest = std::max(largest, std::abs(wanted[k]));
    difference = std::max(difference, std::abs(found - (parts == 2 ? wanted[k] : Complex(wanted[k].real()))));
  }
  return largest > 0 ? difference / largest : difference;
}

constexpr double kTolerance = 1e-6;

void check_length(int64_t n, int64_t parts, bool inverse, bool onesided) {
  CAPTURE(n, parts, inverse, onesided);
  Signal x = signal_of(n, parts == 1), wanted;
  int64_t outputs = onesided ? n / 2 + 1 : n;
  for (int64_t k = 0; k < outputs; ++k)
    wanted.push_back(sum_at(x, k, n, inverse) / (inverse ? static_cast<double>(n) : 1));
  Imported imported = dft(n, parts, inverse, onesided);
  CHECK(error_of(run(imported, {stored(x, parts)})[0], wanted, 2) < kTolerance);
}

// Half a spectrum of a real signal, back to the signal.
void check_mirrored(int64_t n) {
  CAPTURE(n);
  Signal x = signal_of(n, true), half;
  for (int64_t k = 0; k <= n / 2; ++k) half.push_back(sum_at(x, k, n, false));
  Imported imported = dft(n / 2 + 1, 2, /*inverse=*/true, /*onesided=*/true, n);
  CHECK(error_of(run(imported, {stored(half, 2)})[0], x, 1) < kTolerance);
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

} // namespace

TEST_CASE("transforms of short lengths, products of small factors and primes") {
  for (int64_t n : {1, 2, 3, 5, 12, 48, 49, 64, 97, 100, 127, 128, 210, 251, 256, 400, 510, 512, 625})
    for (int64_t parts : {1, 2})
      for (bool inverse : {false, true}) check_length(n, parts, inverse, /*onesided=*/false);
  for (int64_t n : {1, 2, 3, 49, 64, 97, 250, 400, 480, 512, 513, 1000, 1024})
    check_length(n, 1, false, true);
  for (int64_t n : {1, 2, 3, 48, 49, 64, 101, 400, 405, 512, 1024}) check_mirrored(n);
}

TEST_CASE("transforms of long lengths") {
  for (int64_t n : {1021, 1024, 1025, 2039, 2047, 2048}) check_length(n, 1, false, true);
  for (int64_t n : {2039, 2048}) {
    check_length(n, 2, true, false);
    check_mirrored(n);
  }
}

TEST_CASE("zeros behind a signal, and signals that are cut") {
  for (int64_t length : {30, 300, 1024}) {
    Signal x = signal_of(260, false), used = x, wanted;
    used.resize(static_cast<size_t>(std::min<int64_t>(length, 260)));
    for (int64_t k = 0; k < length; ++k) wanted.push_back(sum_at(used, k, length, false));
    CHECK(error_of(run(dft(260, 2, false, false, length), {stored(x, 2)})[0], wanted, 2) < kTolerance);
  }
}

TEST_CASE("short transforms are one product, long ones several") {
  CHECK(count(dft(64, 1, false, true).text(), "= dot ") == 1);
  CHECK(count(dft(1024, 1, false, true).text(), "= dot ") > 1);
  // A prime length takes two transforms of a power of two, each several products.
  CHECK(count(dft(2039, 2, false, false).text(), "= dot ") > 3);
}

TEST_CASE("transforms of real numbers along several dims, and back") {
  const char* domain = "com.microsoft";
  auto fourier = [&](const std::string& op, int64_t dims, const std::string& from, const std::string& to) {
    return node(op, {from}, {to}, {attribute("signal_ndim", dims), attribute("onesided", 1)}, domain);
  };
  for (int64_t dims : {1, 2, 3}) {
    Model model;
    model.opsets = {{"", 17}, {domain, 1}};
    model.graph.inputs = {value("x", F32, {2, 3, 5, 8})};
    model.graph.nodes = {fourier("Rfft", dims, "x", "y"), fourier("Irfft", dims, "y", "z")};
    model.graph.outputs = {value("y", F32, {}), value("z", F32, {})};
    Imported imported = import_model(model);
    std::vector<double> values;
    for (const Complex& each : signal_of(240, true)) values.push_back(each.real());
    auto got = run(imported, {f32({2, 3, 5, 8}, values)});
    CHECK(got[0]->dims() == std::vector<int64_t>{2, 3, 5, 5, 2});
    // The first is the sum over the dims that are transformed.
    double sum = 0;
    int64_t summed = dims == 1 ? 8 : dims == 2 ? 40 : 120;
    for (int64_t i = 0; i < summed; ++i) sum += values[static_cast<size_t>(i)];
    CHECK(got[0]->get_double(0) == Approx(sum).margin(1e-5));
    for (int64_t i = 0; i < 240; ++i)
      CHECK(got[1]->get_double(i) == Approx(values[static_cast<size_t>(i)]).margin(1e-6));
  }
}

TEST_CASE("frames of signals whose number and length vary") {
  Model model;
  model.opsets = {{"", 17}};
  model.graph.inputs = {value("x", F32, {"b", "n"})};
  model.graph.outputs = {value("y", F32, {})};
  model.graph.initializers = {int_scalar("step", 2), int_scalar("length", 4)};
  model.graph.nodes = {node("STFT", {"x", "step", "", "length"}, {"y"})};
  onnx::ImportOptions options;
  options.ranges = {{"b", {1, 4, 1, {}}}, {"n", {4, 40, 1, {}}}};
  Imported imported = import_model(model, options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  auto y = run(imported, {f32({1, 6}, {1, 2, 3, 4, 5, 6})})[0];
  CHECK(y->dims() == std::vector<int64_t>{1, 2, 3, 2});
  const std::vector<double> want{10, 0, -2, 2, -2, 0, 18, 0, -2, 2, -2, 0};
  for (size_t i = 0; i < want.size(); ++i) CHECK(numbers(y)[i] == Approx(want[i]).margin(1e-5));
}

TEST_CASE("transforms along a dim that varies are those of its lengths") {
  auto model_of = [](const std::string& op, const WireDim& extent, int64_t parts, bool inverse,
                     bool onesided) {
    bool is_dft = op == "DFT";
    std::vector<WireDim> dims{2, extent};
    if (is_dft || inverse) dims.emplace_back(parts);
    Model model;
    model.opsets = {is_dft ? std::pair<std::string, int64_t>{"", 17}
                           : std::pair<std::string, int64_t>{"com.microsoft", 1}};
    model.graph.inputs = {value("x", F32, dims)};
    model.graph.outputs = {value("y", F32, {})};
    std::vector<Message> attributes{attribute("onesided", onesided)};
    attributes.push_back(is_dft ? attribute("inverse", inverse) : attribute("signal_ndim", 1));
    model.graph.nodes = {node(op, {"x"}, {"y"}, attributes, is_dft ? "" : "com.microsoft")};
    return model;
  };
  struct Form {
    const char* op;
    int64_t parts;
    bool inverse, onesided;
  };
  for (const Form& form : {Form{"DFT", 1, false, false},
                           {"DFT", 2, false, false},
                           {"DFT", 2, true, false},
                           {"DFT", 1, false, true},
                           {"DFT", 2, true, true},
                           {"Rfft", 1, false, true},
                           {"Irfft", 2, true, true}}) {
    onnx::ImportOptions options;
    options.ranges = {{"n", {2, 130, 1, {}}}};
    Imported varying = import_model(model_of(form.op, "n", form.parts, form.inverse, form.onesided), options);
    INFO(varying.messages);
    REQUIRE(varying.model);
    for (int64_t n : {2, 3, 4, 5, 64, 97, 130}) {
      INFO(form.op << " of " << n);
      Signal signal = signal_of(2 * n, form.parts == 1);
      std::vector<double> values = numbers(stored(signal, form.parts));
      bool has_parts = std::string(form.op) != "Rfft";
      LiteralRef x =
          f32(has_parts ? std::vector<int64_t>{2, n, form.parts} : std::vector<int64_t>{2, n}, values);
      LiteralRef found = run(varying, {x})[0];
      LiteralRef wanted =
          run(import_model(model_of(form.op, n, form.parts, form.inverse, form.onesided)), {x})[0];
      REQUIRE(found->dims() == wanted->dims());
      for (int64_t k = 0; k < wanted->num_elements(); ++k)
        CHECK(std::abs(found->get_double(k) - wanted->get_double(k)) < 1e-4);
    }
  }
}
