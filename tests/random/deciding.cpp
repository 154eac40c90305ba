// See deciding.h.
#include "tests/random/deciding.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace firn::test {
namespace {

constexpr double kMaxRoom = 20000; // elements that loose bounds may reserve

int64_t length(const Numbers& numbers) {
  return static_cast<int64_t>(numbers.max.size());
}

// The numbers of one element.
Numbers element(const Numbers& numbers, size_t i) {
  Numbers one{{}, {numbers.max[i]}};
  for (const Dims& at : numbers.at) one.at.push_back({at[i]});
  return one;
}

bool any_below_zero(const Numbers& numbers) {
  return std::any_of(numbers.at.begin(), numbers.at.end(), [](const Dims& at) {
    return std::any_of(at.begin(), at.end(), [](int64_t number) { return number < 0; });
  });
}

// An input whose elements in each run are what `make` gives for the wanted numbers.
std::string raw_input(Growth& g, DType dtype, const Numbers& numbers,
                      const std::function<int64_t(int64_t number, size_t run)>& make) {
  size_t run = 0;
  return g.input_in_each({length(numbers)}, [&](const Dims& dims) {
    auto literal = std::make_shared<Literal>(dtype, dims);
    for (size_t i = 0; i < numbers.max.size(); ++i)
      literal->set_int(static_cast<int64_t>(i), make(numbers.at[run][i], run));
    ++run;
    return literal;
  });
}

// A few runs in which an element of the input is at its type's ends or near the bounds.
std::vector<TestEnd> extremes(Growth& g, const std::string& input, const Numbers& numbers) {
  std::vector<TestEnd> ends;
  for (int64_t i = g.random.between(1, 3); i > 0; --i) {
    auto literal = std::make_shared<Literal>(g.literal(input));
    auto place = static_cast<size_t>(g.random.between(0, length(numbers) - 1));
    int64_t max = numbers.max[place], far = literal->dtype() == DType::I64 ? INT64_MAX : INT32_MAX;
    literal->set_int(static_cast<int64_t>(place),
                     g.random.pick({max + 1, max + 1, max + g.random.between(1, 40), int64_t{-1},
                                    -1 - g.random.between(0, max), int64_t{0}, far, -far - 1, far - max,
                                    far / 2 + 1, int64_t{1} << 31}));
    ends.push_back({input, std::move(literal)});
  }
  return ends;
}

// An operand of which only the bound is known: one number for each element, or one for all if theirs are
// equal.
Deciding bounded(Growth& g, std::string operand, const Numbers& numbers, bool derived) {
  Dims max = numbers.max;
  if (std::all_of(max.begin(), max.end(), [&](int64_t each) { return each == max[0]; }) &&
      g.random.chance(0.5))
    max.resize(1);
  return {operand, {{operand, max, derived && !g.random.chance(0.2)}}, {}};
}

// Clip(x, 0, max), perhaps without the lower end.
Deciding clipped(Growth& g, Numbers numbers) {
  int64_t max = *std::max_element(numbers.max.begin(), numbers.max.end());
  bool has_min = g.random.chance(0.7);
  DType dtype = g.random.pick({DType::I64, DType::I64, DType::I32});
  std::string raw = raw_input(g, dtype, numbers, [&](int64_t number, size_t) {
    int64_t beyond = g.random.pick({0, 0, 1, 7, 1000});
    return number == max ? number + beyond : number == 0 && has_min ? -beyond : number;
  });
  std::string operand =
      g.add("Clip", {raw, has_min ? g.constant_scalar(dtype, 0) : std::string(Growth::kAbsent),
                     g.constant_scalar(dtype, static_cast<double>(max))});
  if (dtype == DType::I32) operand = g.add("Cast", {operand}, {attribute("to", wire_type(DType::I64))});
  if (operand.empty()) return {};
  std::fill(numbers.max.begin(), numbers.max.end(), max);
  Deciding result = bounded(g, operand, numbers, /*derived=*/true);
  result.ends = extremes(g, raw, numbers);
  return result;
}

// x modulo one more than the bound.
Deciding remainder(Growth& g, Numbers numbers) {
  int64_t divisor = *std::max_element(numbers.max.begin(), numbers.max.end()) + 1;
  std::string raw = raw_input(g, DType::I64, numbers, [&](int64_t number, size_t) {
    return number + divisor * g.random.between(0, 3);
  });
  std::string operand = g.add("Mod", {raw, g.constant_scalar(DType::I64, static_cast<double>(divisor))});
  if (operand.empty()) return {};
  std::fill(numbers.max.begin(), numbers.max.end(), divisor - 1);
  Deciding result = bounded(g, operand, numbers, /*derived=*/true);
  result.ends = extremes(g, raw, numbers);
  return result;
}

// Bytes, whose type says no more than that they are at most 255: the bound has to be told.
Deciding cast_bytes(Growth& g, const Numbers& numbers) {
  if (*std::max_element(numbers.max.begin(), numbers.max.end()) > 255) return deciding_input(g, numbers);
  std::string raw = raw_input(g, DType::U8, numbers, [](int64_t number, size_t) { return number; });
  std::string operand = g.add("Cast", {raw}, {attribute("to", wire_type(DType::I64))});
  if (operand.empty()) return {};
  Deciding result = bounded(g, operand, numbers, /*derived=*/false);
  auto literal = std::make_shared<Literal>(g.literal(raw));
  literal->set_int(0, std::min<int64_t>(255, numbers.max[0] + g.random.between(1, 200)));
  result.ends.push_back({raw, std::move(literal)});
  return result;
}

// A mask with as many true elements in each run as the only number says.
std::string mask_of(Growth& g, const Numbers& numbers) {
  int64_t extent = numbers.max[0];
  while (!g.is_fixed(extent)) ++extent;
  size_t run = 0;
  return g.input_in_each({extent}, [&](const Dims& dims) {
    auto literal = std::make_shared<Literal>(DType::Bool, dims);
    int64_t wanted = numbers.at[run++][0];
    for (int64_t left = extent; left > 0; --left)
      if (g.random.between(1, left) <= wanted) literal->set_int(left - 1, 1), --wanted;
    return literal;
  });
}

// The number of true elements, as a sum or as the size of NonZero's result.
Deciding counted(Growth& g, const Numbers& numbers) {
  std::string mask = mask_of(g, numbers);
  if (g.random.chance(0.5)) {
    std::string size = g.add("Shape", {g.add("NonZero", {mask})}, {attribute("start", 1)});
    return {size, {}, {}};
  }
  std::string ones = g.add("Cast", {mask}, {attribute("to", wire_type(DType::I64))});
  std::string sum = g.add("ReduceSum", {ones, g.constant_ints({0})}, {attribute("keepdims", 1)});
  Numbers summed = numbers;
  summed.max[0] = g.literal(mask).num_elements();
  return sum.empty() ? Deciding{} : bounded(g, sum, summed, /*derived=*/true);
}

// An extent less an input, or the smaller of both.
Deciding from_extent(Growth& g, const Numbers& numbers) {
  std::string x = g.find([](const Literal& v) { return v.num_elements() > 0 && !v.dims().empty(); });
  if (x.empty()) return {};
  int64_t axis = g.random.between(0, g.rank(x) - 1);
  std::string extent = g.add("Shape", {x}, {attribute("start", axis), attribute("end", axis + 1)});
  if (extent.empty()) return {};
  auto extent_in = [&](size_t run) { return g.literal(extent, run).get_int(0); };
  bool is_smaller = g.random.chance(0.5);
  Numbers told = numbers;
  for (size_t run = 0; run < numbers.at.size(); ++run) {
    is_smaller &= numbers.at[run][0] <= extent_in(run);
    told.max[0] = std::max(told.max[0], extent_in(run));
  }
  std::string raw = raw_input(g, DType::I64, numbers, [&](int64_t number, size_t run) {
    if (!is_smaller) return extent_in(run) - number;
    return number < extent_in(run) ? number : number + g.random.between(0, 9);
  });
  std::string operand = g.add(is_smaller ? "Min" : "Sub", {extent, raw});
  if (operand.empty()) return {};
  Deciding result = bounded(g, operand, is_smaller ? told : numbers, /*derived=*/is_smaller);
  result.ends = extremes(g, raw, numbers);
  return result;
}

Deciding of_one(Growth& g, const Numbers& numbers) {
  if (any_below_zero(numbers)) return deciding_input(g, numbers);
  switch (g.random.between(0, 6)) {
  case 0: return deciding_input(g, numbers);
  case 1: return clipped(g, numbers);
  case 2: return remainder(g, numbers);
  case 3: return cast_bytes(g, numbers);
  case 4:
  case 5: return numbers.max[0] > 0 ? counted(g, numbers) : deciding_input(g, numbers);
  default: return from_extent(g, numbers);
  }
}

// Elements that come from different places, some of them constants.
Deciding joined(Growth& g, const Numbers& numbers) {
  Names parts;
  TestBound bound{"", {}, /*derived=*/true};
  Deciding result;
  bool all_known = true;
  for (size_t i = 0; i < numbers.max.size(); ++i) {
    Numbers one = element(numbers, i);
    bool same = std::all_of(one.at.begin(), one.at.end(), [&](const Dims& at) { return at == one.at[0]; });
    Deciding part =
        same && g.random.chance(0.4) ? Deciding{g.constant_ints(one.at[0]), {}, {}} : of_one(g, one);
    if (part.operand.empty()) return {};
    parts.push_back(part.operand);
    all_known &= part.bounds.empty();
    bound.max.push_back(part.bounds.empty() ? one.max[0] : part.bounds[0].max[0]);
    bound.derived &= part.bounds.empty() || part.bounds[0].derived;
    result.ends.insert(result.ends.end(), part.ends.begin(), part.ends.end());
  }
  result.operand = bound.value = g.add("Concat", parts, {attribute("axis", 0)});
  if (!all_known) result.bounds = {bound};
  return result.operand.empty() ? Deciding{} : result;
}

} // namespace

std::vector<int64_t> draw_numbers(Growth& g, int64_t max) {
  std::vector<int64_t> numbers;
  for (size_t run = 0; run < g.num_runs(); ++run) {
    int64_t min = run == 0 ? std::min<int64_t>(1, max) : 0;
    numbers.push_back(g.random.chance(0.5) ? g.random.pick({min, std::min<int64_t>(1, max), max})
                                           : g.random.between(min, max));
  }
  return numbers;
}

Numbers draw_numbers(Growth& g, const Dims& max) {
  Numbers numbers{std::vector<Dims>(g.num_runs()), max};
  for (int64_t each : max) {
    std::vector<int64_t> drawn = draw_numbers(g, each);
    for (size_t run = 0; run < drawn.size(); ++run) numbers.at[run].push_back(drawn[run]);
  }
  return numbers;
}

Deciding deciding_input(Growth& g, const Numbers& numbers) {
  DType dtype = DType::I64;
  std::string raw = raw_input(g, dtype, numbers, [](int64_t number, size_t) { return number; });
  Deciding result = bounded(g, raw, numbers, /*derived=*/false);
  result.ends = extremes(g, raw, numbers);
  return result;
}

Deciding draw_deciding(Growth& g, const Numbers& numbers) {
  if (!g.is_fixed(length(numbers))) return {}; // the operand would be longer or shorter in other runs
  if (numbers.max.size() == 1) return of_one(g, numbers);
  if (g.random.chance(0.4)) return joined(g, numbers);
  // If one number bounds all elements, the bound of the result is its power.
  double room = std::pow(static_cast<double>(*std::max_element(numbers.max.begin(), numbers.max.end())),
                         static_cast<double>(length(numbers)));
  if (any_below_zero(numbers) || room > kMaxRoom) return deciding_input(g, numbers);
  switch (g.random.between(0, 3)) {
  case 0: return clipped(g, numbers);
  case 1: return remainder(g, numbers);
  case 2: return cast_bytes(g, numbers);
  default: return deciding_input(g, numbers);
  }
}

} // namespace firn::test
