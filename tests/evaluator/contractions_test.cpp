// dot and convolution: by hand, and against a direct sum over random shapes.
#include "tests/evaluator/hlo_case.h"

#include <random>

using namespace firn;
using namespace firn::test;

TEST_CASE("dot", "[evaluator]") {
  std::string x = "%x = constant [1.0, 2.0, 3.0, 4.0, 5.0, 6.0] : f32[2,3] ";
  expect(x + "%y = constant [1.0, 0.0, 0.0, 1.0, 1.0, 1.0] : f32[3,2] %r = dot %x, %y {lhs_batch = [], "
             "rhs_batch = [], "
             "lhs_contract = [1], rhs_contract = [0]} : f32[2,2]",
         "f32[2,2]", "4.0, 5.0, 10.0, 11.0");
  expect(x + "%r = dot %x, %x {lhs_batch = [0], rhs_batch = [0], lhs_contract = [1], rhs_contract = [1]} : "
             "f32[2]",
         "f32[2]", "14.0, 77.0");
  expect(x + "%r = dot %x, %x {lhs_batch = [1], rhs_batch = [1], lhs_contract = [0], rhs_contract = [0]} : "
             "f32[3]",
         "f32[3]", "17.0, 29.0, 45.0");
  expect(x + "%y = constant [1.0, 10.0] : f32[2] %r = dot %x, %y {lhs_batch = [], rhs_batch = [], "
             "lhs_contract = [], "
             "rhs_contract = []} : f32[2,3,2]",
         "f32[2,3,2]", "1.0, 10.0, 2.0, 20.0, 3.0, 30.0, 4.0, 40.0, 5.0, 50.0, 6.0, 60.0");
  expect("%x = constant [] : f32[2,0] %y = constant [] : f32[0,1] %r = dot %x, %y {lhs_batch = [], rhs_batch "
         "= [], "
         "lhs_contract = [1], rhs_contract = [0]} : f32[2,1]",
         "f32[2,1]", "0.0, 0.0");
  expect("%x = constant [1.0, inf] : f32[1,2] %y = constant [nan, 0.0, 1.0, 0.0] : f32[2,2] %r = dot %x, %y "
         "{lhs_batch = [], "
         "rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : f32[1,2]",
         "f32[1,2]", "nan, nan");
}

TEST_CASE("integer and complex dots", "[evaluator]") {
  std::string dims = "{lhs_batch = [], rhs_batch = [], lhs_contract = [0], rhs_contract = [0], result = ";
  expect("%x = constant [255, 255] : u8[2] %y = constant [-128, 127] : i8[2] %r = dot %x, %y " + dims +
             "i32} : i32[]",
         "i32[]", "-255");
  expect("%x = constant [4611686018427387904, 3] : i64[2] %y = constant [4, 5] : i64[2] %r = dot %x, %y " +
             dims + "i64} : i64[]",
         "i64[]", "15");
  expect("%x = constant [100, 100] : i8[2] %r = dot %x, %x " + dims + "i8} : i8[]", "i8[]", "32");
  expect("%x = constant [(0.0, 1.0), (1.0, 1.0)] : c64[2] %r = dot %x, %x " + dims + "c64} : c64[]", "c64[]",
         "(-1.0, 2.0)");
}

TEST_CASE("convolution by hand", "[evaluator]") {
  std::string x = "%x = constant [1.0, 2.0, 3.0, 4.0] : f32[1,1,4] %w = constant [1.0, 10.0] : f32[1,1,2] ";
  auto convolve = [&](const std::string& window, const std::string& extent, const std::string& wanted) {
    std::string type = "f32[1,1," + extent + "]";
    expect(x + "%r = convolution %x, %w {groups = 1, window = " + window + "} : " + type, type, wanted);
  };
  convolve("2", "3", "21.0, 32.0, 43.0");
  convolve("2 pad 1_1", "5", "10.0, 21.0, 32.0, 43.0, 4.0");
  convolve("2 stride 2", "2", "21.0, 43.0");
  convolve("2 dilate 2", "2", "31.0, 42.0");
  convolve("2 pad -1_-1", "1", "32.0");
  convolve("2 pad 1_1 input_dilate 2", "8", "10.0, 1.0, 20.0, 2.0, 30.0, 3.0, 40.0, 4.0");
  convolve("2 pad 0_-3", "0", "");
}

namespace {

struct Problem {
  std::vector<int64_t> input, filter;
  Window window;
  int64_t groups;
};

// The sum as the definition says it, in f64.
std::vector<double> direct(const Problem& p, const Literal& x, const Literal& w,
                           const std::vector<int64_t>& result) {
  std::vector<double> sums;
  size_t rank = p.window.dims.size();
  int64_t per_group = p.filter[0] / p.groups;
  std::vector<int64_t> index(result.size(), 0);
  for (int64_t i = 0; i < Type::tensor_of(DType::F32, result).num_elements(); ++i) {
    int64_t rest = i;
    for (size_t d = result.size(); d-- > 0;) index[d] = rest % result[d], rest /= result[d];
    double sum = 0;
    for (int64_t element = 0; element < w.num_elements() / p.filter[0]; ++element) {
      int64_t at_filter = index[1] * (w.num_elements() / p.filter[0]) + element;
      std::vector<int64_t> k(rank);
      int64_t left = element;
      for (size_t d = rank; d-- > 0;) k[d] = left % p.filter[d + 2], left /= p.filter[d + 2];
      int64_t at = index[0] * p.input[1] + index[1] / per_group * p.filter[1] + left;
      bool inside = true;
      for (size_t d = 0; d < rank; ++d) {
        const WindowDim& dim = p.window.dims[d];
        int64_t position = index[d + 2] * dim.stride + k[d] * dim.dilation - dim.pad_low;
        inside = inside && position >= 0 && position % dim.input_dilation == 0 &&
                 position / dim.input_dilation < p.input[d + 2];
        at = at * p.input[d + 2] + (inside ? position / dim.input_dilation : 0);
      }
      if (inside) sum += x.get_double(at) * w.get_double(at_filter);
    }
    sums.push_back(sum);
  }
  return sums;
}

Problem random_problem(std::mt19937& random) {
  auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  Problem p;
  p.groups = pick(1, 3);
  p.filter = {p.groups * pick(1, 3), pick(1, 3)};
  p.input = {pick(1, 2), p.groups * p.filter[1]};
  int64_t rank = pick(1, 3);
  for (int64_t d = 0; d < rank; ++d) {
    WindowDim dim{pick(1, 3), pick(1, 2), pick(-1, 2), pick(-1, 2), pick(1, 2), pick(1, 2)};
    p.window.dims.push_back(dim);
    p.filter.push_back(dim.size);
    p.input.push_back(pick(1, 6));
  }
  return p;
}

} // namespace

TEST_CASE("convolution against a direct sum", "[evaluator]") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Problem p = random_problem(random);
    DType dtype = round % 4 == 0 ? DType::I8 : DType::F32,
          accumulator = round % 4 == 0 ? DType::I32 : DType::F32;
    auto x = std::make_shared<Literal>(dtype, p.input), w = std::make_shared<Literal>(dtype, p.filter);
    for (auto& literal : {x, w})
      for (int64_t i = 0; i < literal->num_elements(); ++i)
        literal->set_double(i, static_cast<double>(random() % 17) - 8);
    std::vector<int64_t> result{p.input[0], p.filter[0]};
    for (size_t d = 0; d < p.window.dims.size(); ++d)
      result.push_back(p.window.dims[d].output_size(p.input[d + 2]));
    Module module("m");
    Region& body = module.add_function("main").body();
    Value input = body.add_parameter(x->type())->result(), filter = body.add_parameter(w->type())->result();
    body.set_results(
        {body.append(Opcode::Convolution, {input, filter}, {Type::tensor_of(accumulator, result)},
                     {{"window", p.window}, {"groups", p.groups}})
             ->result()});
    auto results = evaluate(module, {x, w});
    INFO(p.window.to_string());
    REQUIRE(results);
    std::vector<double> wanted = direct(p, *x, *w, result);
    for (size_t i = 0; i < wanted.size(); ++i)
      REQUIRE(results->front()->get_double(static_cast<int64_t>(i)) == wanted[i]);
  }
}
