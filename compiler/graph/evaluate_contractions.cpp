// dot and convolution as matrix products: floats in f64, integers exactly modulo 2^64, complex numbers in
// complex f64. A convolution gathers the input under the window into a matrix (im2col), block by block.
#include "compiler/graph/evaluate_elements.h"
#include "compiler/graph/evaluate_wide_elements.h"

#include <Eigen/Core>
#include <algorithm>

namespace firn::evaluation {

namespace {

template <class T> using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// out[m,n] = a[m,k] * b[k,n].
template <class T> void multiply(const T* a, const T* b, T* out, int64_t m, int64_t k, int64_t n) {
  if constexpr (std::is_same_v<T, int64_t>) {
    std::fill_n(out, m * n, 0);
    for (int64_t row = 0; row < m; ++row)
      for (int64_t i = 0; i < k; ++i) {
        auto factor = static_cast<uint64_t>(a[row * k + i]);
        for (int64_t column = 0; column < n; ++column)
          out[row * n + column] = static_cast<int64_t>(static_cast<uint64_t>(out[row * n + column]) +
                                                       factor * static_cast<uint64_t>(b[i * n + column]));
      }
  } else {
    Eigen::Map<const Matrix<T>> lhs(a, m, k), rhs(b, k, n);
    Eigen::Map<Matrix<T>>(out, m, n).noalias() = lhs * rhs;
  }
}

// The domain to compute in. Sums of products of narrow integers are exact in f64, which has the faster
// product.
Domain accumulator_domain(const Literal& lhs, const Literal& rhs, DType result, int64_t terms) {
  Domain domain = domain_of(result);
  bool narrow = domain == Domain::Integer && bit_width(lhs.dtype()) <= 16 && bit_width(rhs.dtype()) <= 16;
  return narrow && terms < (int64_t{1} << 20) ? Domain::Real : domain;
}

void store_sums(const std::vector<double>& sums, Literal& literal) {
  WideElements wide(domain_of(literal.dtype()), 0);
  if (wide.domain == Domain::Real)
    wide.real = sums;
  else
    for (double sum : sums) wide.integer.push_back(static_cast<int64_t>(sum));
  store_all(wide, literal);
}
void store_sums(std::vector<int64_t>& sums, Literal& literal) {
  WideElements wide(Domain::Integer, 0);
  wide.integer.swap(sums);
  store_all(wide, literal);
}
void store_sums(std::vector<std::complex<double>>& sums, Literal& literal) {
  WideElements wide(Domain::Complex, 0);
  wide.complex.swap(sums);
  store_all(wide, literal);
}

// Runs f(T()) with the type to compute in, for `sums` sums of `terms` products; refuses mixtures that have no
// meaning.
template <class F> Expected<Values> with_accumulator(const OpCall& call, int64_t sums, int64_t terms, F f) {
  const Literal &lhs = call.tensor(0), &rhs = call.tensor(1);
  constexpr double products_per_step = 64;
  double work = static_cast<double>(sums) * static_cast<double>(terms) / products_per_step;
  if (Result ok = call.spend(work); !ok) return ok.error();
  Domain result = domain_of(call.result_dtype());
  auto fits = [&](Domain domain) {
    return domain == result || (domain == Domain::Real && result == Domain::Complex) ||
           (domain == Domain::Integer && result == Domain::Real);
  };
  if (result == Domain::Text || !fits(domain_of(lhs.dtype())) || !fits(domain_of(rhs.dtype())))
    return call.unsupported("cannot combine " + describe(lhs) + " and " + describe(rhs) + " to " +
                            std::string(dtype_name(call.result_dtype())));
  switch (accumulator_domain(lhs, rhs, call.result_dtype(), terms)) {
  case Domain::Real: return f(double());
  case Domain::Integer: return f(int64_t());
  default: return f(std::complex<double>());
  }
}

// The dims of one side of a dot in three groups.
struct DotSide {
  Dims order; // batch, free, contracted dims (lhs) or batch, contracted, free (rhs)
  int64_t batch = 1, free = 1, contracted = 1;
  Dims batch_dims, free_dims, contracted_dims;
};

Expected<DotSide> dot_side(const OpCall& call, int operand, const Dims& batch, const Dims& contract) {
  const Dims& dims = call.tensor(operand).dims();
  std::vector<bool> taken(dims.size(), false);
  DotSide side;
  auto take = [&](const Dims& group, Dims& extents, int64_t& count) {
    for (int64_t dim : group) {
      if (dim < 0 || dim >= static_cast<int64_t>(dims.size()) || taken[static_cast<size_t>(dim)])
        return false;
      taken[static_cast<size_t>(dim)] = true;
      extents.push_back(dims[static_cast<size_t>(dim)]);
      count *= extents.back();
    }
    return true;
  };
  if (!take(batch, side.batch_dims, side.batch) || !take(contract, side.contracted_dims, side.contracted))
    return call.fail("dims do not fit " + describe(call.tensor(operand)));
  Dims free;
  for (size_t i = 0; i < dims.size(); ++i)
    if (!taken[i]) free.push_back(static_cast<int64_t>(i));
  take(free, side.free_dims, side.free);
  side.order = batch;
  const Dims &second = operand == 0 ? free : contract, &third = operand == 0 ? contract : free;
  side.order.insert(side.order.end(), second.begin(), second.end());
  side.order.insert(side.order.end(), third.begin(), third.end());
  return side;
}

} // namespace

Expected<Values> evaluate_dot(const OpCall& call) {
  auto lhs = dot_side(call, 0, call.ints("lhs_batch"), call.ints("lhs_contract"));
  if (!lhs) return lhs.error();
  auto rhs = dot_side(call, 1, call.ints("rhs_batch"), call.ints("rhs_contract"));
  if (!rhs) return rhs.error();
  if (lhs->batch_dims != rhs->batch_dims || lhs->contracted_dims != rhs->contracted_dims)
    return call.fail(describe(call.tensor(0)) + " and " + describe(call.tensor(1)) + " do not fit");
  Dims dims = lhs->batch_dims;
  dims.insert(dims.end(), lhs->free_dims.begin(), lhs->free_dims.end());
  dims.insert(dims.end(), rhs->free_dims.begin(), rhs->free_dims.end());
  if (Result fits = call.check_size(call.result_dtype(), dims); !fits) return fits.error();
  auto a = transposed(call, call.literal(0), lhs->order), b = transposed(call, call.literal(1), rhs->order);
  if (!a) return a.error();
  if (!b) return b.error();
  int64_t m = lhs->free, k = lhs->contracted, n = rhs->free;
  return with_accumulator(call, product(dims), k, [&](auto type) -> Expected<Values> {
    using T = decltype(type);
    auto result = call.allocate(call.result_dtype(), dims);
    if (!result) return result.error();
    std::vector<T> left = load_as<T>(**a), right = load_as<T>(**b);
    std::vector<T> sums(static_cast<size_t>((*result)->num_elements()));
    if (!sums.empty())
      for (int64_t i = 0; i < lhs->batch; ++i)
        multiply(left.data() + i * m * k, right.data() + i * k * n, sums.data() + i * m * n, m, k, n);
    store_sums(sums, **result);
    return one(*result);
  });
}

namespace {

// A convolution's extents and, per spatial dim, which input index lies under a window element: source[dim][k
// * out + o] is that index, or -1 in the padding.
struct ConvolutionShape {
  int64_t batch, channels, outputs, groups, group_channels, group_outputs;
  Dims input, window, output; // spatial
  std::vector<std::vector<int64_t>> source;
  int64_t input_size, window_size, output_size;
  Dims result_dims;
};

Result check_convolution(const OpCall& call, const Window& window, int64_t groups) {
  const Dims &input = call.tensor(0).dims(), &filter = call.tensor(1).dims();
  if (input.size() < 2 || filter.size() != input.size() || window.dims.size() + 2 != input.size())
    return call.fail("input " + describe(call.tensor(0)) + ", filter " + describe(call.tensor(1)) +
                     " and a window of rank " + std::to_string(window.dims.size()) + " do not fit");
  if (groups < 1 || input[1] % groups != 0 || filter[0] % groups != 0 || filter[1] != input[1] / groups)
    return call.fail("input " + describe(call.tensor(0)) + " and filter " + describe(call.tensor(1)) +
                     " do not fit with " + std::to_string(groups) + " groups");
  constexpr int64_t limit = int64_t{1} << 31;
  for (size_t i = 0; i < window.dims.size(); ++i) {
    const WindowDim& dim = window.dims[i];
    if (dim.size != filter[i + 2])
      return call.fail("the window does not have the extents of filter " + describe(call.tensor(1)));
    if (dim.size < 1 || dim.stride < 1 || dim.dilation < 1 || dim.input_dilation < 1 || dim.stride > limit ||
        dim.dilation > limit || dim.input_dilation > limit || std::abs(dim.pad_low) > limit ||
        std::abs(dim.pad_high) > limit)
      return call.fail("the window is out of range");
  }
  return {};
}

Expected<ConvolutionShape> convolution_shape(const OpCall& call) {
  const Attribute* attribute = call.attributes().find("window");
  const auto* window = attribute ? std::get_if<Window>(attribute) : nullptr;
  if (!window) return call.fail("has no window");
  int64_t groups = call.integer("groups", 1);
  if (Result ok = check_convolution(call, *window, groups); !ok) return ok.error();
  const Dims &input = call.tensor(0).dims(), &filter = call.tensor(1).dims();
  ConvolutionShape shape{};
  shape.batch = input[0], shape.channels = input[1], shape.outputs = filter[0], shape.groups = groups;
  shape.group_channels = filter[1], shape.group_outputs = filter[0] / groups;
  shape.result_dims = {shape.batch, shape.outputs};
  for (size_t i = 0; i < window->dims.size(); ++i) {
    const WindowDim& dim = window->dims[i];
    shape.input.push_back(input[i + 2]);
    shape.window.push_back(dim.size);
    shape.output.push_back(dim.output_size(input[i + 2]));
    shape.result_dims.push_back(shape.output.back());
  }
  if (Result fits = call.check_size(call.result_dtype(), shape.result_dims); !fits) return fits.error();
  for (size_t i = 0; i < window->dims.size(); ++i) {
    const WindowDim& dim = window->dims[i];
    if (Result fits = call.check_size(DType::I64, {dim.size, shape.output[i]}); !fits) return fits.error();
    std::vector<int64_t> source;
    for (int64_t k = 0; k < dim.size; ++k)
      for (int64_t o = 0; o < shape.output[i]; ++o) {
        int64_t at = o * dim.stride + k * dim.dilation - dim.pad_low;
        bool inside = at >= 0 && at % dim.input_dilation == 0 && at / dim.input_dilation < shape.input[i];
        source.push_back(inside ? at / dim.input_dilation : -1);
      }
    shape.source.push_back(std::move(source));
  }
  shape.input_size = product(shape.input), shape.window_size = product(shape.window);
  shape.output_size = product(shape.output);
  return shape;
}

// One row of the im2col matrix: the inputs of one channel under window element `tap`, for output positions
// [begin, begin + count).
template <class T>
void gather_row(const ConvolutionShape& shape, const T* channel, int64_t tap, int64_t begin, int64_t count,
                T* row) {
  size_t rank = shape.output.size();
  if (rank == 0) return void(*row = *channel);
  Dims window_index(rank), position(rank);
  for (size_t i = rank; i-- > 0;) window_index[i] = tap % shape.window[i], tap /= shape.window[i];
  int64_t rest = begin;
  for (size_t i = rank; i-- > 0;) position[i] = rest % shape.output[i], rest /= shape.output[i];
  size_t last = rank - 1;
  const int64_t* source = shape.source[last].data() + window_index[last] * shape.output[last];
  while (count > 0) {
    int64_t base = 0;
    for (size_t i = 0; i < last && base >= 0; ++i) {
      int64_t at = shape.source[i][static_cast<size_t>(window_index[i] * shape.output[i] + position[i])];
      base = at < 0 ? -1 : base * shape.input[i] + at;
    }
    int64_t run = std::min(count, shape.output[last] - position[last]);
    const T* line = channel + std::max<int64_t>(base, 0) * shape.input[last];
    for (int64_t i = 0; i < run; ++i) {
      int64_t at = source[position[last] + i];
      row[i] = base < 0 || at < 0 ? T() : line[at];
    }
    row += run;
    count -= run;
    position[last] = 0;
    for (size_t i = last; i-- > 0;) {
      if (++position[i] < shape.output[i]) break;
      position[i] = 0;
    }
  }
}

// One group of one image: filter[group_outputs, terms] times the gathered input, in blocks of output
// positions.
template <class T>
void convolve_group(const ConvolutionShape& shape, const T* input, const T* filter, T* out,
                    std::vector<T>& columns, std::vector<T>& sums) {
  int64_t terms = shape.group_channels * shape.window_size;
  int64_t block = std::clamp<int64_t>((int64_t{1} << 20) / std::max<int64_t>(terms, 1), 64, 8192);
  for (int64_t begin = 0; begin < shape.output_size; begin += block) {
    int64_t count = std::min(block, shape.output_size - begin);
    columns.resize(static_cast<size_t>(terms * count));
    sums.resize(static_cast<size_t>(shape.group_outputs * count));
    for (int64_t channel = 0; channel < shape.group_channels; ++channel)
      for (int64_t tap = 0; tap < shape.window_size; ++tap)
        gather_row(shape, input + channel * shape.input_size, tap, begin, count,
                   columns.data() + (channel * shape.window_size + tap) * count);
    multiply(filter, columns.data(), sums.data(), shape.group_outputs, terms, count);
    for (int64_t row = 0; row < shape.group_outputs; ++row)
      std::copy_n(sums.data() + row * count, count, out + row * shape.output_size + begin);
  }
}

} // namespace

Expected<Values> evaluate_convolution(const OpCall& call) {
  auto shape = convolution_shape(call);
  if (!shape) return shape.error();
  int64_t terms = shape->group_channels * shape->window_size;
  return with_accumulator(call, product(shape->result_dims), terms, [&](auto type) -> Expected<Values> {
    using T = decltype(type);
    auto result = call.allocate(call.result_dtype(), shape->result_dims);
    if (!result) return result.error();
    std::vector<T> input = load_as<T>(call.tensor(0)), filter = load_as<T>(call.tensor(1)), columns, sums;
    std::vector<T> out(static_cast<size_t>((*result)->num_elements()));
    for (int64_t image = 0; image < shape->batch && !out.empty() && terms != 0; ++image)
      for (int64_t group = 0; group < shape->groups; ++group)
        convolve_group(
            *shape,
            input.data() + (image * shape->channels + group * shape->group_channels) * shape->input_size,
            filter.data() + group * shape->group_outputs * terms,
            out.data() + (image * shape->outputs + group * shape->group_outputs) * shape->output_size,
            columns, sums);
    store_sums(out, **result);
    return one(*result);
  });
}

} // namespace firn::evaluation
