// Strings as inputs, outputs and values of objects.
#include "tests/text/text_object.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstring>

using namespace firn;
using namespace firn::test;

namespace {

// Empty, with zeros inside, no UTF-8, long, alike but for the end.
std::vector<std::string> odd_strings() {
  std::string zeros("a\0b", 3);
  return {"",
          zeros,
          zeros + '\0',
          "a",
          "Zürich",
          "\xff\xfe\xc3",
          std::string(5000, 'x'),
          std::string(5000, 'x') + "y",
          " two  words ",
          "\xe2\x82",
          "ÀÉÎ Ⱥ ž",
          "b"};
}

std::string module_of(const std::string& parameters, const std::string& body, const std::string& results,
                      const std::string& types) {
  return "module @text {\n func @main(" + parameters + ") -> (" + types + ") {\n" + body + "\n return " +
         results + "\n }\n}\n";
}

LiteralRef odd(std::vector<int64_t> dims) {
  return strings(std::move(dims), odd_strings());
}
LiteralRef reversed(std::vector<int64_t> dims) {
  auto values = odd_strings();
  return strings(std::move(dims), {values.rbegin(), values.rend()});
}

} // namespace

TEST_CASE("strings are compared", "[text]") {
  std::string body, results, types;
  for (const char* direction : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    body += std::string("%") + direction + " = compare %x, %y {direction = " + direction + "} : bool[3,4]\n";
    results += std::string(results.empty() ? "%" : ", %") + direction;
    types += types.empty() ? "bool[3,4]" : ", bool[3,4]";
  }
  std::string module = module_of("%x: string[3,4], %y: string[3,4]", body, results, types);
  expect_like_evaluator(module, {odd({3, 4}), reversed({3, 4})});
  expect_like_evaluator(module, {odd({3, 4}), odd({3, 4})});
}

TEST_CASE("strings are found among keys", "[text]") {
  std::string keys;
  for (int i = 0; i < 100; ++i) keys += "\"key " + std::to_string(i * 7 % 100) + "\", ";
  std::string body = "%k = constant [" + keys + R"("", "b", "Zürich", "b"] : string[104]
    %none = constant [] : string[0]
    %r = text_find %x, %k : i64[12]
    %n = text_find %x, %none : i64[12])";
  std::string module = module_of("%x: string[12]", body, "%r, %n", "i64[12], i64[12]");
  expect_like_evaluator(module, {odd({12})});
  std::vector<std::string> all;
  for (int i = 0; i < 12; ++i) all.push_back("key " + std::to_string(i * 9));
  expect_like_evaluator(module, {strings({12}, all)});
}

TEST_CASE("strings are joined, and changed in case, within their room", "[text]") {
  std::string module = module_of("%x: string[3], %y: string[3]",
                                 R"(%xy = text_concatenate %x, %y : string[3]
    %upper = text_case %xy {to = upper} : string[3]
    %all = text_concatenate %upper, %xy : string[3]
    %lower = text_case %all {to = lower} : string[3])",
                                 "%all, %lower, %x", "string[3], string[3], string[3]");
  Literals inputs{strings({3}, {"é", "", std::string("\0\xff", 2)}), strings({3}, {"Ab", "", "z"})};
  expect_like_evaluator(module, inputs);
  // 4 + 3, the same in upper case, both, and those in lower case.
  expect_like_evaluator(module, inputs, {.text_bytes = 42});
  CHECK(run_error(module, inputs, {.text_bytes = 42}).empty());
  for (int64_t bytes : {0, 1, 6, 13, 41})
    CHECK(run_error(module, inputs, {.text_bytes = bytes}).find("--text-bytes") != std::string::npos);
}

TEST_CASE("strings are cut", "[text]") {
  std::string module = module_of("%x: string[2,6]",
                                 R"(%a:2 = text_split %x {pieces = 4} : (string[2,6,4], i64[2,6])
    %b:2 = text_split %x {delimiter = "x", pieces = 3, splits = 2} : (string[2,6,3], i64[2,6])
    %c:2 = text_split %x {delimiter = " w", pieces = 2} : (string[2,6,2], i64[2,6])
    %d:2 = text_split %x {pieces = 1, splits = 0} : (string[2,6,1], i64[2,6]))",
                                 "%a#0, %a#1, %b#0, %b#1, %c#0, %c#1, %d#0, %d#1",
                                 "string[2,6,4], i64[2,6], string[2,6,3], i64[2,6], string[2,6,2], i64[2,6], "
                                 "string[2,6,1], i64[2,6]");
  expect_like_evaluator(module, {odd({2, 6})});
  std::string few = module_of("%x: string[2]", "%a:2 = text_split %x {pieces = 2} : (string[2,2], i64[2])",
                              "%a#0", "string[2,2]");
  CHECK(run_error(few, {strings({2}, {"a b", " a b "})}).empty());
  CHECK(run_error(few, {strings({2}, {"a b", "a b c"})}).find("--text-pieces") != std::string::npos);
}

namespace {

// Numbers as C's library writes them, near and at the halves between two, and what is no number.
std::vector<std::string> written_numbers() {
  std::vector<std::string> texts{"0",
                                 "-0",
                                 " 12\t",
                                 "+.5",
                                 "5.",
                                 "-1e3",
                                 "iNf",
                                 "-infinity",
                                 "NaN",
                                 "1e400",
                                 "-1e-400",
                                 "1E+2",
                                 "0e99999999999999999999",
                                 "1e99999999999999999999",
                                 "4.9406564584124654e-324",
                                 "2.4703282292062327e-324",
                                 "2.4703282292062328e-324",
                                 "1.7976931348623158e308",
                                 "1.7976931348623159e308",
                                 "9007199254740993",
                                 "9007199254740993.0000000000000000000000000000000000000001",
                                 "0." + std::string(3000, '0') + "17e3001",
                                 std::string(900, '7')};
  // Halfway between 1 and the next double: 1 + 2^-53, and a digit more after a thousand zeros.
  const std::string half = "1.00000000000000011102230246251565404236316680908203125";
  texts.insert(texts.end(), {half, half + std::string(1000, '0') + "1"});
  uint64_t state = 1;
  for (int i = 0; i < 2000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    double value = 0;
    std::memcpy(&value, &state, sizeof value);
    char text[64];
    std::snprintf(text, sizeof text, "%.*g", 1 + i % 20, std::isfinite(value) ? value : 0.1);
    texts.push_back(text);
  }
  return texts;
}

} // namespace

TEST_CASE("strings become numbers, and numbers strings", "[text]") {
  auto texts = written_numbers();
  auto count = static_cast<int64_t>(texts.size());
  std::string n = "[" + std::to_string(count) + "]";
  std::string module =
      module_of("%x: string" + n,
                "%r = convert %x {to = f64} : f64" + n + "\n%s = convert %r {to = string} : string" + n,
                "%r, %s", "f64" + n + ", string" + n);
  expect_like_evaluator(module, {strings({count}, texts)}, {.text_bytes = 1 << 20});
  std::string whole = module_of("%x: string[8], %u: u64[2]",
                                R"(%r = convert %x {to = i64} : i64[8]
    %s = convert %r {to = string} : string[8]
    %v = convert %u {to = string} : string[2])",
                                "%r, %s, %v", "i64[8], string[8], string[2]");
  expect_like_evaluator(whole, {strings({8}, {"0", "-9223372036854775808", "18446744073709551615", " 7 ",
                                              "-2.99", "1.5e2", "123e-2", "0.00001e7"}),
                                Literal::of<int64_t>(DType::U64, {2}, {-1, 10})});
}

TEST_CASE("a string that is no number ends the run", "[text]") {
  auto parse = [](const std::string& to) {
    return module_of("%x: string[2]", "%r = convert %x {to = " + to + "} : " + to + "[2]", "%r", to + "[2]");
  };
  std::vector<Literals> no_f64, no_i64;
  for (const std::string& text : odd_strings())
    for (auto* runs : {&no_f64, &no_i64}) runs->push_back({strings({2}, {"1", text})});
  for (const char* text :
       {"1e", "1e+", "--1", ".", "e5", "0x10", "1 2", "in", "infinit", "nano", "1_000", "1,5"})
    no_f64.push_back({strings({2}, {"1", text})});
  for (const char* text : {"nan", "inf", "18446744073709551616", "-9223372036854775809", "1e20"})
    no_i64.push_back({strings({2}, {text, "1"})});
  for (const auto& [to, runs] : {std::pair("f64", no_f64), std::pair("i64", no_i64)}) {
    std::vector<std::string> errors = run_errors(parse(to), runs);
    for (size_t i = 0; i < runs.size(); ++i) {
      INFO(to << " of '" << runs[i][0]->string_values()[0] << "', '" << runs[i][0]->string_values()[1]
              << "'");
      CHECK(errors[i].find("casts to a number") != std::string::npos);
    }
  }
  std::string format =
      module_of("%x: i64[2]", "%r = convert %x {to = string} : string[2]", "%r", "string[2]");
  LiteralRef numbers = Literal::of_i64({-123, 4});
  CHECK(run_error(format, {numbers}, {.text_bytes = 5}).empty());
  CHECK(run_error(format, {numbers}, {.text_bytes = 4}).find("--text-bytes") != std::string::npos);
}

TEST_CASE("strings are matched", "[text]") {
  expect_like_evaluator(module_of("%x: string[12]",
                                  R"(%a = text_match %x {pattern = "(?s).*"} : bool[12]
    %b = text_match %x {pattern = "x+y?|Z.rich|a\\x00b"} : bool[12]
    %c = text_match %x {pattern = ""} : bool[12])",
                                  "%a, %b, %c", "bool[12], bool[12], bool[12]"),
                        {odd({12})});
}

TEST_CASE("strings are moved as other elements are", "[text]") {
  std::string body = R"(%k = constant ["one", "two", "three", "four"] : string[4]
    %e = constant ["empty"] : string[]
    %rows = reshape %k : string[1,4]
    %wide = broadcast_in_dim %rows {dims = [0, 1]} : string[3,4]
    %chosen = select %c, %x, %wide : string[3,4]
    %turned = transpose %chosen {permutation = [1, 0]} : string[4,3]
    %picked = gather %turned, %i {axis = 0} : string[2,3]
    %part = slice %x {starts = [0, 1], limits = [3, 4], strides = [2, 2]} : string[2,2]
    %both = concatenate %picked, %part {dim = 1} : string[2,5]
    %padded = pad %both, %e {low = [1, 0], high = [0, -1], interior = [0, 0]} : string[3,4]
    %back = reverse %padded {dims = [1]} : string[3,4]
    %same = gather_elements %back, %j {axis = 1} : string[3,2]
    %put = scatter_elements %back, %j, %same {axis = 0} : string[3,4]
    %update = dynamic_update_slice %put, %part, %at, %at : string[3,4])";
  Literals inputs{odd({3, 4}),
                  Literal::of<int64_t>(DType::Bool, {3, 4}, {1, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 0}),
                  Literal::of<int64_t>(DType::I64, {2}, {3, -3}),
                  Literal::of<int64_t>(DType::I64, {3, 2}, {1, 0, 2, 1, -1, 0}),
                  Literal::of<int64_t>(DType::I64, {}, {1})};
  expect_like_evaluator(
      module_of("%x: string[3,4], %c: bool[3,4], %i: i64[2], %j: i64[3,2], %at: i64[]", body,
                "%turned, %both, %padded, %same, %update, %k, %x",
                "string[4,3], string[2,5], string[3,4], string[3,2], string[3,4], string[4], string[3,4]"),
      inputs);
}

TEST_CASE("strings in branches and loops", "[text]") {
  std::string module = R"(module @text {
  func @main(%x: string[2], %n: i64[], %flag: bool[]) -> (string[2], string[2]) {
    %one = constant [1] : i64[]
    %zero = constant [0] : i64[]
    %dash = constant ["-", "+"] : string[2]
    %last:2 = while %x, %zero region(%s: string[2], %i: i64[]) {
      %more = compare %i, %n {direction = lt} : bool[]
      return %more
    }, region(%t: string[2], %j: i64[]) {
      %longer = text_concatenate %t, %dash : string[2]
      %next = add %j, %one : i64[]
      return %longer, %next
    } : (string[2], i64[])
    %y = if %flag region() {
      %u = text_case %last#0 {to = upper} : string[2]
      return %u
    }, region() {
      return %dash
    } : string[2]
    return %last#0, %y
  }
})";
  for (int64_t n : {0, 1, 5})
    for (int64_t flag : {0, 1})
      expect_like_evaluator(module, {strings({2}, {"a", ""}), Literal::of<int64_t>(DType::I64, {}, {n}),
                                     Literal::of<int64_t>(DType::Bool, {}, {flag})});
  CHECK(run_error(module, {strings({2}, {"a", ""}), Literal::of<int64_t>(DType::I64, {}, {1000}),
                           Literal::of<int64_t>(DType::Bool, {}, {0})})
            .find("--text-bytes") != std::string::npos);
}

TEST_CASE("numbers of strings that a run counts", "[text]") {
  std::string module = R"(module @text {
  symbol n in [0, 5]
  func @main(%x: string[5], %e: string[]) -> (string[<=n], bool[<=n]) {
    %b = broadcast_in_dim %e {dims = []} : string[5]
    %c = compare %x, %b {direction = ne} : bool[5]
    %at:2 = non_zero %c : (i64[1,<=n], i64[])
    %flat = reshape %at#0 : i64[<=n]
    %kept = gather %x, %flat {axis = 0} : string[<=n]
    %short = text_match %kept {pattern = "..?"} : bool[<=n]
    return %kept, %short
  }
})";
  for (const auto& values : {std::vector<std::string>{"a", "", "bc", "", "def"}, {"", "", "", "", ""}})
    expect_like_evaluator(module, {strings({5}, values), strings({}, {""})});
}

TEST_CASE("ops that have no code for strings", "[text]") {
  CHECK(compile_error(module_of("%x: string[2]", "%r = convert %x {to = i8} : i8[2]", "%r", "i8[2]"))
            .find("no code can be made for operands of type string[2]") != std::string::npos);
  CHECK(compile_error(module_of("%x: f16[2]", "%r = convert %x {to = string} : string[2]", "%r", "string[2]"))
            .find("no code can be made for values of type string[2]") != std::string::npos);
}

TEST_CASE("strings are no state", "[text]") {
  std::string module = R"(module @text {
  func @main(%x: string[2], %past: string[2]) -> (string[2], string[2]) aliases [-1, 1] {
    %y = text_concatenate %x, %past : string[2]
    return %y, %y
  }
})";
  CHECK(compile_error(module).find("states of strings are not supported") != std::string::npos);
}
