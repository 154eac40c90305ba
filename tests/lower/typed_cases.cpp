// See typed_cases.h.
#include "tests/lower/typed_cases.h"

#include "tests/codegen/model_object.h"

#include <random>

namespace firn::test {

const std::vector<std::string> kProductCpus = {"native",      "x86-64-v3",   "x86-64",    "cortex-a72",
                                               "neoverse-n1", "neoverse-n2", "cortex-m4", "cortex-m3",
                                               "cortex-m55",  "generic-rv64"};
const std::vector<std::string> kNativeCpus = {"native", "x86-64-v3", "x86-64"};

const Types kUnlikeBytes{"u8", "i8", "i32"}, kUnlikeBytesSwapped{"i8", "u8", "i32"},
    kSignedBytes{"i8", "i8", "i32"}, kUnsignedBytes{"u8", "u8", "i32"}, kI16{"i16", "i16", "i32"},
    kI16Bytes{"i16", "i8", "i32"}, kBytesI16{"u8", "i16", "i32"}, kBf16{"bf16", "bf16", "f32"};
const std::vector<Types> kProductTypes = {kUnlikeBytes, kUnlikeBytesSwapped, kSignedBytes, kUnsignedBytes,
                                          kI16,         kI16Bytes,           kBytesI16,    kBf16};
const std::vector<Types> kMatrixTypes = {kUnlikeBytes, kUnlikeBytesSwapped, kSignedBytes, kUnsignedBytes,
                                         kBf16};

bool are_bytes(const Types& types) {
  auto is_byte = [](const std::string& dtype) { return dtype == "u8" || dtype == "i8"; };
  return is_byte(types.lhs) && is_byte(types.rhs);
}

bool is_float_type(const std::string& dtype) {
  return dtype == "bf16" || dtype == "f16" || dtype == "f32";
}

std::vector<std::string> cpus_for(const std::string& dtype, std::vector<std::string> cpus) {
  if (is_float_type(dtype)) std::erase(cpus, "cortex-m3");
  return cpus;
}

Range range_of(const std::string& dtype) {
  if (dtype == "u8") return {0, 255};
  if (dtype == "i4") return {-8, 7};
  if (dtype == "i8") return {-128, 127};
  if (dtype == "u16") return {0, 65535};
  if (dtype == "i16") return {-32768, 32767};
  if (dtype == "i32") return {-1e6, 1e6};
  return {-2, 2};
}

std::string extreme_constant(const std::string& dtype, int64_t count, unsigned seed) {
  if (is_float_type(dtype)) return random_constant(count, seed);
  std::mt19937 random(seed);
  Range range = range_of(dtype);
  std::string text = "constant [";
  for (int64_t i = 0; i < count; ++i) {
    auto low = static_cast<int64_t>(range.low), high = static_cast<int64_t>(range.high);
    int64_t value = random() % 2 ? (random() % 2 ? low : high)
                                 : std::uniform_int_distribution<int64_t>(low, high)(random);
    text += (i ? ", " : "") + std::to_string(value);
  }
  return text + "]";
}

std::string dims_text(const std::vector<int64_t>& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? "," : "") + std::to_string(dims[i]);
  return text + "]";
}

LoweredOptions options_for(const Types& types, const std::vector<std::string>& cpus) {
  LoweredOptions options;
  options.tolerance = is_float_type(types.result) ? 1e-5 : 0;
  options.ranges = {{"x", range_of(types.lhs)}, {"w", range_of(types.rhs)}};
  options.cpus = cpus_for(types.lhs, cpus);
  return options;
}

std::string DotCase::text() const {
  std::string x = types.lhs + dims_text(lhs_transposed ? std::vector{k, m} : std::vector{m, k}),
              w = types.rhs + dims_text(rhs_transposed ? std::vector{n, k} : std::vector{k, n}),
              y = types.result + dims_text({m, n});
  return "module @m { func @main(%x: " + x + (constant ? "" : ", %w: " + w) + ") -> (" + y + ") { " +
         (constant ? "%w = " + extreme_constant(numbers_of.empty() ? types.rhs : numbers_of, k * n, 3) +
                         " : " + w + " "
                   : "") +
         "%y = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [" + (lhs_transposed ? "0" : "1") +
         "], rhs_contract = [" + (rhs_transposed ? "1" : "0") + "], result = " + types.result +
         (plan.empty() ? "" : ", plan = \"" + plan + "\"") + "} : " + y + " return %y } }";
}

std::string ConvolutionCase::text(const std::string& cpu) const {
  size_t space = std::min(cpu.find(' '), cpu.size());
  int lanes = target_of("", cpu.substr(0, space)).cpu.channel_block();
  std::string blocks = ":1x" + std::to_string(block > 0 ? block : lanes);
  std::string in = types.lhs + dims_text({2, channels, 6, 9}),
              w = types.rhs + dims_text({filters, channels / groups, window, window}),
              out = types.result + dims_text({2, filters, out_high, out_wide});
  std::string laid_in = in + (layout == Blocked ? "{0,1,2,3" + blocks + "}" : ""),
              laid_out = out + (layout == Blocked ? "{0,1,2,3" + blocks + "}" : "");
  std::string given = layout == ChannelsLast ? types.lhs + dims_text({2, 6, 9, channels}) : in;
  int64_t count = filters * channels / groups * window * window;
  std::string copy = layout == Blocked ? "%i = copy %x : " + laid_in
                     : layout == ChannelsLast
                         ? "%i = transpose %x {permutation = [0, 3, 1, 2]} : " + in + "{0,2,3,1}"
                         : "";
  return "module @m { func @main(%x: " + given + (constant ? "" : ", %w: " + w) + ") -> (" + out + ") { " +
         (constant ? "%w = " + extreme_constant(numbers_of.empty() ? types.rhs : numbers_of, count, 5) +
                         " : " + w + " "
                   : "") +
         copy + " %c = convolution " + (layout == Fixed ? "%x" : "%i") + ", %w {window = " + attributes +
         ", groups = " + std::to_string(groups) + ", result = " + types.result +
         (plan.empty() ? "" : ", plan = \"" + plan + "\"") + "} : " + laid_out +
         (layout == Blocked ? " %r = copy %c : " + out + " return %r } }" : " return %c } }");
}

} // namespace firn::test
