// Conversions and 16-bit arithmetic in vectors of every width: those that are no power of two are put
// together from parts by LLVM, in other ways than the parts alone. All kernels of one width are one object.
#include "compiler/target/cpu_table.h"
#include "tests/codegen/narrow_floats.h"
#include "tests/codegen/op_runner.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <random>

namespace firn::test {

using namespace kernel;

namespace {

constexpr int64_t kNumbers = 132; // in each table of operands; kernels take as many as their vectors cover

// A number of any type: floats as f64, which holds them; integers by their bits.
struct Number {
  double real = 0;
  uint64_t bits = 0;
};

int mantissa_of(Scalar scalar) {
  return scalar == Scalar::F16 ? 10 : 7;
}
bool is_half(Scalar scalar) {
  return scalar == Scalar::F16 || scalar == Scalar::BF16;
}
int64_t as_signed(uint64_t bits, Scalar scalar) {
  int unused = 64 - 8 * scalar_bytes(scalar);
  return static_cast<int64_t>(bits << unused) >> unused;
}
uint64_t as_unsigned(uint64_t bits, Scalar scalar) {
  int unused = 64 - 8 * scalar_bytes(scalar);
  return bits << unused >> unused;
}

Number read(Scalar scalar, const char* bytes) {
  Number number;
  std::memcpy(&number.bits, bytes, static_cast<size_t>(scalar_bytes(scalar)));
  if (scalar == Scalar::F64) number.real = std::bit_cast<double>(number.bits);
  if (scalar == Scalar::F32)
    number.real = static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(number.bits)));
  if (is_half(scalar)) {
    double value = decode(static_cast<uint16_t>(number.bits), mantissa_of(scalar));
    number.real = std::copysign(value, number.bits & 0x8000 ? -1.0 : 1.0); // a NaN's sign too
  }
  return number;
}

// The float nearest to a number that f64 cannot always hold.
Number rounded(Scalar to, long double exact) {
  Number number;
  number.real = static_cast<double>(exact);
  if (to == Scalar::F32) number.real = static_cast<double>(static_cast<float>(exact));
  if (!is_half(to)) return number;
  // To f64 with an odd last bit where inexact, so that rounding again is rounding once.
  double odd = static_cast<double>(exact);
  if (static_cast<long double>(odd) != exact && !std::isnan(odd) && !std::isinf(odd)) {
    if (std::fabs(static_cast<long double>(odd)) > std::fabs(exact)) odd = std::nextafter(odd, 0.0);
    uint64_t bits;
    std::memcpy(&bits, &odd, sizeof bits);
    bits |= 1;
    std::memcpy(&odd, &bits, sizeof bits);
  }
  number.real = decode(encode(odd, mantissa_of(to)), mantissa_of(to));
  return number;
}

// One op on operands of a type, and the number that it should give; nothing if any number will do.
struct Case {
  std::string name;
  Scalar from, to;
  std::function<Register(Builder&, Register x, Register y)> emit;
  std::function<std::optional<Number>(Number x, Number y)> expect;
};

std::optional<Number> to_integer(Number x, Scalar to, bool is_signed, bool saturates) {
  int bits = 8 * scalar_bytes(to);
  double low = is_signed ? -std::ldexp(1.0, bits - 1) : 0,
         high = std::ldexp(1.0, is_signed ? bits - 1 : bits);
  double whole = std::trunc(x.real);
  uint64_t max = is_signed ? (uint64_t{1} << (bits - 1)) - 1 : ~uint64_t{0} >> (64 - bits);
  if (std::isnan(x.real)) return saturates ? std::optional(Number{}) : std::nullopt;
  if (whole < low) return saturates ? std::optional(Number{0, max + (is_signed ? 1 : -max)}) : std::nullopt;
  if (whole >= high) return saturates ? std::optional(Number{0, max}) : std::nullopt;
  return Number{0, whole < 0 ? static_cast<uint64_t>(static_cast<int64_t>(whole))
                             : static_cast<uint64_t>(whole)};
}

Case cast_case(OpKind kind, Scalar from, Scalar to) {
  Case made;
  made.name = std::string(op_kind_info(kind).mnemonic) + " " + std::string(scalar_name(from)) + " to " +
              std::string(scalar_name(to));
  made.from = from;
  made.to = to;
  made.emit = [=](Builder& b, Register x, Register) { return b.cast(kind, x, to); };
  made.expect = [=](Number x, Number) -> std::optional<Number> {
    switch (kind) {
    case OpKind::FExt:
    case OpKind::FTruncTo: return rounded(to, static_cast<long double>(x.real));
    case OpKind::SIToF: return rounded(to, static_cast<long double>(as_signed(x.bits, from)));
    case OpKind::UIToF: return rounded(to, static_cast<long double>(as_unsigned(x.bits, from)));
    case OpKind::SExt: return Number{0, static_cast<uint64_t>(as_signed(x.bits, from))};
    case OpKind::ZExt:
    case OpKind::Trunc: return Number{0, as_unsigned(x.bits, from)};
    default:
      return to_integer(x, to, kind == OpKind::FToSI || kind == OpKind::FToSISat,
                        kind == OpKind::FToSISat || kind == OpKind::FToUISat);
    }
  };
  return made;
}

std::vector<Case> casts(const std::vector<Scalar>& floats, const std::vector<Scalar>& integers) {
  std::vector<Case> all;
  for (Scalar from : floats)
    for (Scalar to : floats)
      if (scalar_bytes(from) != scalar_bytes(to))
        all.push_back(
            cast_case(scalar_bytes(from) < scalar_bytes(to) ? OpKind::FExt : OpKind::FTruncTo, from, to));
  for (Scalar real : floats)
    for (Scalar integer : integers) {
      for (OpKind kind : {OpKind::SIToF, OpKind::UIToF}) all.push_back(cast_case(kind, integer, real));
      for (OpKind kind : {OpKind::FToSI, OpKind::FToUI, OpKind::FToSISat, OpKind::FToUISat})
        all.push_back(cast_case(kind, real, integer));
    }
  for (Scalar from : integers)
    for (Scalar to : integers) {
      if (scalar_bytes(from) > scalar_bytes(to)) all.push_back(cast_case(OpKind::Trunc, from, to));
      if (scalar_bytes(from) >= scalar_bytes(to)) continue;
      for (OpKind kind : {OpKind::SExt, OpKind::ZExt}) all.push_back(cast_case(kind, from, to));
    }
  return all;
}

// Ops on 16-bit floats, comparisons among them: alone, and two joined, which take each other's masks.
std::vector<Case> half_arithmetic() {
  std::vector<Case> all;
  for (HalfKind half : half_kinds) {
    Scalar type = half.scalar;
    auto add = [&](const std::string& name, auto emit, auto expect) {
      all.push_back({name + " " + std::string(scalar_name(type)), type, type, emit, [=](Number x, Number y) {
                       return std::optional(rounded(type, static_cast<long double>(expect(x.real, y.real))));
                     }});
    };
    auto binary = [&](OpKind kind, auto expect) {
      add(
          std::string(op_kind_info(kind).mnemonic),
          [=](Builder& b, Register x, Register y) { return b.binary(kind, x, y); }, expect);
    };
    binary(OpKind::FAdd, [](double x, double y) { return x + y; });
    binary(OpKind::FSub, [](double x, double y) { return x - y; });
    binary(OpKind::FMul, [](double x, double y) { return x * y; });
    binary(OpKind::FDiv, [](double x, double y) { return x / y; });
    binary(OpKind::FMinFast, [](double x, double y) { return x < y ? x : y; });
    binary(OpKind::FMaxFast, [](double x, double y) { return x > y ? x : y; });
    binary(OpKind::FCopySign, [](double x, double y) { return std::copysign(x, y); });
    add(
        "sqrt of a sum",
        [](Builder& b, Register x, Register y) {
          return b.unary(OpKind::FSqrt, b.binary(OpKind::FMaximum, x, y));
        },
        [](double x, double y) { return std::isnan(x) || std::isnan(y) ? NAN : std::sqrt(std::max(x, y)); });
    using Compare = bool (*)(double, double);
    const std::pair<Predicate, Compare> compares[] = {
        {Predicate::Eq, [](double x, double y) { return x == y; }},
        {Predicate::Ne, [](double x, double y) { return x != y; }},
        {Predicate::Lt, [](double x, double y) { return x < y; }},
        {Predicate::Le, [](double x, double y) { return x <= y; }},
        {Predicate::Gt, [](double x, double y) { return x > y; }},
        {Predicate::Ge, [](double x, double y) { return x >= y; }}};
    for (auto [predicate, holds] : compares)
      add(
          "compare",
          [predicate = predicate](Builder& b, Register x, Register y) {
            Register zero = b.constant(b.type(x), 0);
            Register both = b.binary(OpKind::And, b.compare(OpKind::FCmp, predicate, x, y),
                                     b.compare(OpKind::FCmp, predicate, zero, y));
            return b.select(both, x, b.unary(OpKind::FNeg, y));
          },
          [holds = holds](double x, double y) { return holds(x, y) && holds(0, y) ? x : -y; });
  }
  return all;
}

// Random bits, which are random numbers of every magnitude, mixed with numbers that are hard to convert.
std::vector<char> operands_of(Scalar scalar, unsigned seed) {
  std::mt19937_64 random(seed);
  auto size = static_cast<size_t>(scalar_bytes(scalar));
  std::vector<char> bytes(kNumbers * size);
  const double notable[] = {0,
                            -0.0,
                            0.5,
                            1.5,
                            2.5,
                            -0.5,
                            127.5,
                            128,
                            -128.5,
                            255.9,
                            256,
                            32767.5,
                            65504,
                            65519,
                            65520,
                            65536,
                            2147483520,
                            2147483648,
                            4294967040,
                            4294967296,
                            9.2e18,
                            1.8446744073709552e19,
                            1e30,
                            -1e30,
                            6e-8,
                            3e-8,
                            1e-40,
                            1e-45,
                            INFINITY,
                            -INFINITY,
                            NAN,
                            1.0009765625,
                            1.00048828125,
                            0.333};
  for (int64_t i = 0; i < kNumbers; ++i) {
    uint64_t bits = random();
    double value = notable[random() % std::size(notable)];
    if (random() % 3 == 0)
      value =
          std::ldexp(static_cast<double>(static_cast<int64_t>(random())), -static_cast<int>(random() % 70));
    bool special = random() % 2 == 0;
    if (special && scalar == Scalar::F64) std::memcpy(&bits, &value, sizeof value);
    if (auto single = static_cast<float>(value); special && scalar == Scalar::F32)
      std::memcpy(&bits, &single, sizeof single);
    if (special && is_half(scalar)) bits = encode(value, mantissa_of(scalar));
    if (special && !is_float(scalar)) bits = bits >> (random() % 64) ^ (random() % 2 ? ~uint64_t{0} : 0);
    std::memcpy(bytes.data() + static_cast<size_t>(i) * size, &bits, size);
  }
  return bytes;
}

bool agrees(Scalar to, Number got, Number want) {
  if (!is_float(to)) return as_unsigned(got.bits, to) == as_unsigned(want.bits, to);
  if (std::isnan(want.real)) return std::isnan(got.real);
  return got.real == want.real && std::signbit(got.real) == std::signbit(want.real);
}

// Runs all cases in vectors of `lanes`, as the kernels of one program.
void check_width(const Machine& target, firn::OptLevel level, const std::vector<Case>& cases, int lanes) {
  constexpr Scalar types[] = {Scalar::I8,  Scalar::I16,  Scalar::I32, Scalar::I64,
                              Scalar::F16, Scalar::BF16, Scalar::F32, Scalar::F64};
  Program program;
  program.name = "widths";
  std::vector<std::vector<char>> operands;
  std::vector<const void*> inputs;
  auto add_buffer = [&](Space space, int64_t bytes, int index) {
    Buffer buffer;
    buffer.space = space;
    buffer.bytes = bytes;
    buffer.io_index = index;
    return program.add_buffer(buffer);
  };
  for (Scalar type : types)
    for (unsigned seed : {1u, 2u}) {
      operands.push_back(operands_of(type, seed));
      add_buffer(Space::Input, static_cast<int64_t>(operands.back().size()),
                 static_cast<int>(operands.size()) - 1);
    }
  for (const auto& table : operands) inputs.push_back(table.data());
  int64_t count = kNumbers / lanes * lanes;
  std::vector<std::vector<char>> results;
  for (const Case& one : cases) {
    auto kernel = std::make_unique<Kernel>();
    kernel->name = "k" + std::to_string(results.size());
    Builder b(*kernel);
    int x = b.add_parameter("x", one.from, kNumbers, false),
        y = b.add_parameter("y", one.from, kNumbers, false),
        out = b.add_parameter("out", one.to, count, true);
    b.loop(0, count, lanes, [&](const IntExpr& i) {
      b.store(one.emit(b, b.load({one.from, lanes}, x, i), b.load({one.from, lanes}, y, i)), out, i);
    });
    int table = 2 * static_cast<int>(std::find(std::begin(types), std::end(types), one.from) - types);
    Step step;
    step.kernel = static_cast<int>(program.kernels.size());
    results.emplace_back(static_cast<size_t>(count * scalar_bytes(one.to)));
    int written = add_buffer(Space::Output, static_cast<int64_t>(results.back().size()),
                             static_cast<int>(results.size()) - 1);
    step.arguments = {{table, 0}, {table + 1, 0}, {written, 0}};
    program.steps.push_back(step);
    program.kernels.push_back(std::move(kernel));
  }
  codegen::CodegenOptions options = options_for(target);
  options.opt_level = level;
  std::vector<void*> outputs;
  for (auto& bytes : results) outputs.push_back(bytes.data());
  REQUIRE(LoadedObject(program, options).run(inputs, outputs) == 0);
  for (size_t c = 0; c < cases.size(); ++c) {
    const Case& one = cases[c];
    auto table = 2 * static_cast<size_t>(std::find(std::begin(types), std::end(types), one.from) - types);
    auto element = [&](const std::vector<char>& bytes, Scalar type, int64_t i) {
      return read(type, bytes.data() + i * scalar_bytes(type));
    };
    for (int64_t i = 0; i < count; ++i) {
      Number x = element(operands[table], one.from, i), y = element(operands[table + 1], one.from, i);
      std::optional<Number> want = one.expect(x, y);
      Number got = element(results[c], one.to, i);
      if (want && !agrees(one.to, got, *want))
        FAIL(one.name << " of " << x.real << " (" << x.bits << "), " << y.real << " gave " << got.real << " ("
                      << got.bits << "), wanted " << want->real << " (" << want->bits << ") on "
                      << target.processor << " at level " << static_cast<int>(level) << ", lane " << i % lanes
                      << " of " << lanes);
    }
  }
}

// The rows of the table that this machine can run. AMD's rows have instructions that no feature bit stands
// for.
std::vector<Machine> native_targets() {
  uint64_t host = host_target().required_cpu_features;
  std::vector<Machine> targets;
  for (const CpuRow& row : cpu_table()) {
    if (row.arch != Arch::X86_64 || row.name.starts_with("znver")) continue;
    Machine target = target_of("x86_64-linux-gnu", std::string(row.name));
    if ((target.required_cpu_features & ~host) == 0) targets.push_back(target);
  }
  return targets;
}

const std::vector<Scalar> all_floats = {Scalar::F16, Scalar::BF16, Scalar::F32, Scalar::F64},
                          all_integers = {Scalar::I8, Scalar::I16, Scalar::I32, Scalar::I64};

} // namespace

TEST_CASE("vectors of odd widths convert and compute as scalars do", "[ops]") {
  std::vector<Case> cases = casts(all_floats, {Scalar::I16, Scalar::I64}), arithmetic = half_arithmetic();
  cases.insert(cases.end(), arithmetic.begin(), arithmetic.end());
  for (const Machine& target : {target_of("x86_64-linux-gnu", "x86-64"), host_target()})
    for (int lanes : {3, 11}) check_width(target, firn::OptLevel::O2, cases, lanes);
}

TEST_CASE("vectors of every width convert and compute as scalars do", "[.][widths]") {
  std::vector<Case> cases = casts(all_floats, all_integers), arithmetic = half_arithmetic();
  cases.insert(cases.end(), arithmetic.begin(), arithmetic.end());
  for (const Machine& target : native_targets())
    for (firn::OptLevel level :
         {firn::OptLevel::O0, firn::OptLevel::O1, firn::OptLevel::O2, firn::OptLevel::O3})
      for (int lanes = 1; lanes <= 33; ++lanes) check_width(target, level, cases, lanes);
}

TEST_CASE("comparisons of 16-bit floats are made in f32", "[ops]") {
  // A masked vcmpph whose operands change places, to read one from the stack, would keep its predicate.
  Machine target = target_of("x86_64-linux-gnu", "sapphirerapids");
  auto kernel = std::make_unique<Kernel>();
  kernel->name = "compare";
  Builder b(*kernel);
  int x = b.add_parameter("x", Scalar::F16, 11, false), y = b.add_parameter("y", Scalar::F16, 11, false),
      out = b.add_parameter("out", Scalar::F16, 11, true);
  MachineType half{Scalar::F16, 11};
  Register left = b.load(half, x, 0), right = b.load(half, y, 0);
  Register below = b.compare(OpKind::FCmp, Predicate::Lt, left, b.constant(half, 0)),
           differs = b.compare(OpKind::FCmp, Predicate::Ne, left, right);
  b.store(b.select(b.binary(OpKind::And, below, differs), left, right), out, 0);
  auto text = codegen::emit_assembly(program_of(std::move(kernel)), options_for(target));
  REQUIRE(text);
  CHECK(text->find("vcmp") != std::string::npos);
  for (const char* name : {"eqph", "ltph", "leph", "neqph", "nltph", "nleph", "gtph", "geph"})
    CHECK(text->find(name) == std::string::npos);
}

} // namespace firn::test
