// The polynomials of scalar_ops against long double: sampled over all f32 by default, every f32 with --full.
#include "compiler/graph/scalar_host.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

using firn::Opcode;
using firn::scalar_ops::HostScalars;

namespace {

// The distance of an f32 from the true value in units of the last place of the true value's binade.
double ulps(float actual, long double wanted) {
  if (std::isnan(wanted)) return std::isnan(actual) ? 0 : HUGE_VAL;
  long double largest = std::ldexp(1.0L, 128) - std::ldexp(1.0L, 103); // beyond: rounds to infinity
  if (std::fabs(wanted) >= largest)
    return std::isinf(actual) && std::signbit(actual) == std::signbit(wanted) ? 0
           : std::fabs(actual) == std::numeric_limits<float>::max()           ? 1
                                                                              : HUGE_VAL;
  if (!std::isfinite(actual))
    return std::isinf(actual) && std::fabs(wanted) > 0.9999999L * largest ? 1 : HUGE_VAL;
  int exponent = wanted == 0 ? -126 : std::max(std::ilogb(wanted), -126);
  return static_cast<double>(std::fabs(actual - wanted) / std::ldexp(1.0L, exponent - 23));
}

struct Function {
  Opcode opcode;
  std::function<long double(long double)> reference;
  double limit;
  bool flushes = false; // results that are no normal numbers may become zero
};

const std::vector<Function>& functions() {
  static const std::vector<Function> kFunctions = {
      {Opcode::Exponential, [](long double x) { return std::exp(x); }, 4},
      {Opcode::ExponentialMinusOne, [](long double x) { return std::expm1(x); }, 4},
      {Opcode::Log, [](long double x) { return std::log(x); }, 4},
      {Opcode::LogPlusOne, [](long double x) { return std::log1p(x); }, 4},
      {Opcode::Tanh, [](long double x) { return std::tanh(x); }, 4},
      {Opcode::Logistic,
       [](long double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }, 4,
       true},
      {Opcode::Erf, [](long double x) { return std::erf(x); }, 4},
      {Opcode::Sine, [](long double x) { return std::sin(x); }, 4},
      {Opcode::Cosine, [](long double x) { return std::cos(x); }, 4},
      {Opcode::Tan, [](long double x) { return std::tan(x); }, 4},
      {Opcode::Asin, [](long double x) { return std::asin(x); }, 4},
      {Opcode::Acos, [](long double x) { return std::acos(x); }, 4},
      {Opcode::Atan, [](long double x) { return std::atan(x); }, 4},
      {Opcode::Sinh, [](long double x) { return std::sinh(x); }, 4},
      {Opcode::Cosh, [](long double x) { return std::cosh(x); }, 4},
      {Opcode::Asinh, [](long double x) { return std::asinh(x); }, 4},
      {Opcode::Acosh, [](long double x) { return std::acosh(x); }, 4},
      {Opcode::Atanh, [](long double x) { return std::atanh(x); }, 4},
  };
  return kFunctions;
}

struct Worst {
  double ulps = 0;
  float x = 0, y = 0;
  void see(double error, float at, float and_at = 0) {
    if (!(error <= ulps)) ulps = error, x = at, y = and_at;
  }
};

bool report(const std::string& name, const Worst& worst, double limit) {
  bool good = worst.ulps <= limit;
  std::printf("%-24s %8.3f ulp at %.9g %.9g%s\n", name.c_str(), worst.ulps, worst.x, worst.y,
              good ? "" : "  TOO MUCH");
  return good;
}

bool check_unary(uint64_t stride, bool fused) {
  bool good = true;
  HostScalars host;
  host.fused = fused;
  for (const Function& function : functions()) {
    Worst worst;
    auto see = [&](float x) {
      auto y = firn::scalar_ops::unary(host, function.opcode, firn::DType::F32, HostScalars::f32(x));
      long double wanted = function.reference(x);
      bool flushed =
          function.flushes && y.number == 0 && std::fabs(wanted) < std::numeric_limits<float>::min();
      worst.see(flushed ? 0 : ulps(static_cast<float>(y.number), wanted), x);
    };
    for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += stride)
      see(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    for (float x : {0.0f,   -0.0f,   INFINITY,      -INFINITY,  NAN,      1.0f,       -1.0f,
                    1e-45f, -1e-45f, 3.4028235e38f, 88.72284f,  -103.97f, 88.7f,      -87.4f,
                    0.5f,   2.0f,    1.5707964f,    3.1415927f, 1e-38f,   0.99999994f})
      see(x);
    good &= report(std::string(firn::opcode_name(function.opcode)) + (fused ? "" : " without fma"), worst,
                   function.limit);
  }
  return good;
}

bool check_binary(uint64_t count) {
  HostScalars host;
  Worst power, atan2;
  uint64_t state = 88172645463325252u;
  auto next = [&] { return state ^= state << 13, state ^= state >> 7, state ^= state << 17; };
  for (uint64_t i = 0; i < count; ++i) {
    // Half of the pairs over all floats, half where powers are neither zero nor infinite.
    uint64_t random = next();
    float x = std::bit_cast<float>(static_cast<uint32_t>(random)),
          y = std::bit_cast<float>(static_cast<uint32_t>(random >> 32));
    if (i % 2 == 0)
      x = std::exp2f(static_cast<float>(static_cast<int32_t>(random)) * 0x1p-28f),
      y = static_cast<float>(static_cast<int32_t>(random >> 32)) * 0x1p-27f;
    if (i % 4 == 0) x = -x, y = std::round(y);
    auto a = HostScalars::f32(x), b = HostScalars::f32(y);
    power.see(ulps(static_cast<float>(firn::scalar_ops::math::power(host, a, b).number),
                   std::pow(static_cast<long double>(x), static_cast<long double>(y))),
              x, y);
    atan2.see(ulps(static_cast<float>(firn::scalar_ops::math::atan2(host, a, b).number),
                   std::atan2(static_cast<long double>(x), static_cast<long double>(y))),
              x, y);
  }
  for (float x : {0.0f, -0.0f, 1.0f, -1.0f, 2.0f, -2.0f, INFINITY, -INFINITY, NAN, 0.5f})
    for (float y : {0.0f, -0.0f, 1.0f, -1.0f, 2.0f, 3.0f, -3.0f, 0.5f, INFINITY, -INFINITY, NAN}) {
      auto a = HostScalars::f32(x), b = HostScalars::f32(y);
      float p = static_cast<float>(firn::scalar_ops::math::power(host, a, b).number);
      float t = static_cast<float>(firn::scalar_ops::math::atan2(host, a, b).number);
      power.see(ulps(p, std::pow(x, y)), x, y);
      atan2.see(ulps(t, std::atan2(static_cast<long double>(x), static_cast<long double>(y))), x, y);
    }
  return report("power", power, 4) & report("atan2", atan2, 4);
}

// Functions whose results count beside larger numbers: errors relative to 1, or to the result within a range.
bool check_short(uint64_t stride) {
  constexpr float kLog2E = 1.44269504F;
  constexpr double kRootHalf = 0.70710678118654752;
  HostScalars host;
  auto weight_of = [&](const HostScalars::V& x) {
    HostScalars::V center = firn::scalar_ops::math::exponent_magic(host, x);
    return firn::scalar_ops::math::relative_power(host, x, HostScalars::f32(kLog2E), center,
                                                  HostScalars::f32(-127 * 0.693147181F))
        .number;
  };
  double erf = 0, exp = 0;
  bool special = true;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += stride) {
    float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    auto value = HostScalars::f32(x);
    double sum = firn::scalar_ops::math::one_plus_erf(host, value).number;
    special &= std::isnan(sum) == std::isnan(x);
    if (!std::isnan(x)) erf = std::max(erf, std::fabs(sum - (1 + std::erf(static_cast<double>(x)))));
    double gate = firn::scalar_ops::math::one_plus_erf_short(host, value, kRootHalf, 0.5).number,
           whole = 0.5 * (1 + std::erf(static_cast<double>(x) * kRootHalf));
    special &= std::isnan(gate) == std::isnan(x);
    if (!std::isnan(x)) erf = std::max(erf, 2 * std::fabs(gate - whole));
    if (x > 0 || std::isnan(x)) continue;
    double power = weight_of(value), wanted = std::exp2(static_cast<double>(x) * kLog2E);
    if (x < -87.8F || x > -87.2F)
      exp = std::max(exp, x < -87.5F ? (power == 0 ? 0 : 1) : std::fabs(power / wanted - 1));
  }
  special &= std::isnan(weight_of(HostScalars::f32(NAN)));
  std::printf("1 + erf: %.3g absolute, exp of weights: %.3g relative, NaN %s\n", erf, exp,
              special ? "kept" : "LOST");
  return erf < 2.5e-7 && exp < 5e-7 && special;
}

// f64 to 16 significant digits or so, over the ranges where reductions are exact.
bool check_double() {
  HostScalars host;
  bool good = true;
  for (const Function& function : functions()) {
    double worst = 0, at = 0;
    for (double x = -20; x < 20; x += 0.00317) {
      long double wanted = function.reference(x);
      double y = firn::scalar_ops::unary(host, function.opcode, firn::DType::F64, HostScalars::f64(x)).number;
      if (std::isnan(wanted) && std::isnan(y)) continue;
      double error = static_cast<double>(std::fabs(y - wanted) / std::max(std::fabs(wanted), 1e-300L));
      if (!(error <= worst)) worst = error, at = x;
    }
    std::printf("%-24s %.3g relative at %.17g in f64\n",
                std::string(firn::opcode_name(function.opcode)).c_str(), worst, at);
    good &= worst < 4e-15;
  }
  return good;
}

} // namespace

int main(int argc, char** argv) {
  bool full = argc > 1 && std::strcmp(argv[1], "--full") == 0;
  bool good = check_unary(full ? 1 : 8191, true);
  good &= check_unary(full ? 1 : 65521, false);
  good &= check_short(full ? 1 : 1021);
  good &= check_binary(full ? uint64_t{1} << 28 : 200000);
  good &= check_double();
  return good ? 0 : 1;
}
