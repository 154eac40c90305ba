// Factors x^a / w^b of the largest absolute values of an activation's channel and of the weights that it
// meets, for a few a and b. The error is that of rounding, with the steps that min-max ranges have.
#include "compiler/quantize/smooth.h"

#include "compiler/quantize/rescale.h"

#include <algorithm>
#include <cmath>

namespace firn::quantize {
namespace {

constexpr double kLevels = 255, kWeightLevels = 127;

double square(double x) {
  return x * x;
}

// A reader's weight by input channel and output.
class Weight {
public:
  Weight(const Literal& literal, const Rescale::Reader& reader) {
    const auto& dims = literal.dims();
    int64_t taps = 1;
    for (size_t i = 2; i < dims.size(); ++i) taps *= dims[i];
    const bool by_outputs = !reader.transposed && reader.axis == 1; // dims are [outputs, inputs, ...]
    const int64_t rows = dims[0], columns = dims[1];
    outputs_ = by_outputs ? rows : columns * (reader.transposed ? reader.groups : 1);
    for (int64_t a = 0; a < rows; ++a)
      for (int64_t b = 0; b < columns; ++b) {
        double sum = 0, largest = 0;
        for (int64_t t = 0; t < taps; ++t) {
          double value = literal.data<float>()[static_cast<size_t>((a * columns + b) * taps + t)];
          sum += value * value;
          largest = std::max(largest, std::fabs(value));
        }
        int64_t output = by_outputs ? a : a / (rows / reader.groups) * columns * reader.transposed + b;
        int64_t input = by_outputs ? a / (rows / reader.groups) * columns + b : a;
        entries_.push_back({static_cast<int>(output), static_cast<int>(input), largest, sum});
      }
    taps_ = static_cast<double>(taps);
  }

  // The largest absolute weight of every input channel, taken into `largest`.
  void add_maxima(std::vector<double>& largest) const {
    for (const Entry& entry : entries_) {
      double& known = largest[static_cast<size_t>(entry.input)];
      known = std::max(known, entry.largest);
    }
  }

  // The expected squared error over the expected squared output, up to a factor: `step` is that of the
  // activation, `squares` are its channels' mean squares, all before factors.
  double error(const std::vector<double>& factors, double step, const std::vector<double>& squares) const {
    std::vector<double> largest(static_cast<size_t>(outputs_), 0), energy(static_cast<size_t>(outputs_), 0);
    double rounding = 0, signal = 0;
    for (const Entry& entry : entries_) {
      auto input = static_cast<size_t>(entry.input), output = static_cast<size_t>(entry.output);
      rounding += square(factors[input]) * entry.squares;
      signal += entry.squares * squares[input];
      largest[output] = std::max(largest[output], entry.largest * factors[input]);
      energy[output] += taps_ * squares[input] / square(factors[input]);
    }
    double weights = 0;
    for (size_t o = 0; o < largest.size(); ++o)
      weights += square(largest[o] / kWeightLevels) / 12 * energy[o];
    return signal > 0 ? (square(step) / 12 * rounding + weights) / signal : 0;
  }

private:
  struct Entry {
    int output, input;
    double largest, squares;
  };
  std::vector<Entry> entries_;
  int64_t outputs_ = 0;
  double taps_ = 1;
};

// Factors and what they leave of the error.
struct Candidate {
  std::vector<double> factors;
  double error = INFINITY;
};

class Chooser {
public:
  Chooser(const Model& model, const Rescale& rescale, const Channels& channels) : channels_(channels) {
    for (const Rescale::Reader& reader : rescale.readers())
      weights_.emplace_back(*model.constant(model.graph().node(reader.node).input(1)), reader);
    auto count = static_cast<size_t>(channels.size());
    squares_ = channels.squares;
    reach_.resize(count), meets_.assign(count, 0);
    for (size_t c = 0; c < count; ++c)
      reach_[c] = std::max(std::fabs(channels.low[c]), std::fabs(channels.high[c]));
    shrink(channels.places);
    for (const Weight& weight : weights_) weight.add_maxima(meets_);
    for (double& square : squares_) square /= static_cast<double>(channels.places);
  }

  Candidate best(double& without) const {
    Candidate best;
    for (double a : {0.0, 0.25, 0.5, 0.75, 1.0})
      for (double b : {0.0, 0.25, 0.5}) {
        Candidate tried;
        tried.factors = factors(a, b);
        tried.error = error(tried.factors);
        if (a == 0 && b == 0) without = tried.error;
        if (tried.error < best.error) best = std::move(tried);
      }
    return best;
  }

private:
  // The largest of a few values says little about a channel: it is drawn to the mean over all channels.
  void shrink(int64_t places) {
    constexpr double kFew = 256;
    double mean = 0, few = kFew / (kFew + static_cast<double>(places));
    for (double reach : reach_) mean += reach * reach / static_cast<double>(reach_.size());
    for (double& reach : reach_) reach = std::sqrt((1 - few) * reach * reach + few * mean);
  }

  // Factors with a geometric mean of 1; a channel of zeros, or one that meets only zeros, gets 1.
  std::vector<double> factors(double a, double b) const {
    std::vector<double> list(reach_.size(), 1);
    double logarithms = 0;
    int64_t count = 0;
    for (size_t c = 0; c < list.size(); ++c) {
      if (reach_[c] == 0 || meets_[c] == 0) continue;
      list[c] = std::pow(reach_[c], a) / std::pow(meets_[c], b);
      logarithms += std::log(list[c]);
      ++count;
    }
    if (count == 0) return list;
    double mean = std::exp(logarithms / static_cast<double>(count));
    constexpr double kMax = 256;
    for (size_t c = 0; c < list.size(); ++c)
      if (reach_[c] != 0 && meets_[c] != 0) list[c] = std::clamp(list[c] / mean, 1 / kMax, kMax);
    return list;
  }

  double error(const std::vector<double>& factors) const {
    double low = 0, high = 0;
    for (size_t c = 0; c < factors.size(); ++c) {
      low = std::min(low, channels_.low[c] / factors[c]);
      high = std::max(high, channels_.high[c] / factors[c]);
    }
    double sum = 0, step = (high - low) / kLevels;
    for (const Weight& weight : weights_) sum += weight.error(factors, step, squares_);
    return sum;
  }

  const Channels& channels_;
  std::vector<Weight> weights_;
  std::vector<double> squares_, reach_, meets_;
};

} // namespace

int smooth_activations(Model& model, const std::vector<Layer>& layers, const Statistics& statistics) {
  std::set<std::string> seen;
  std::vector<std::pair<std::string, int>> values; // names and axes of channels
  for (const Layer& layer : layers)
    for (int number : layer.activations) {
      const std::string& name = operand(model, layer, number);
      bool known =
          statistics.has(name) && !statistics.is_constant(name) && statistics.channels(name).size() > 1;
      if (known && seen.insert(name).second)
        values.push_back({name, layer.kind == Layer::Kind::Product ? -1 : 1});
    }
  int count = 0;
  for (const auto& [name, axis] : values) {
    const Channels& channels = statistics.channels(name);
    auto rescale = Rescale::find(model, name, axis, channels);
    if (!rescale || rescale->readers().empty()) continue;
    double without = INFINITY;
    Candidate best = Chooser(model, *rescale, channels).best(without);
    // A product that is added has to be worth it.
    const double max = rescale->is_free() ? 0.95 : 0.5;
    if (!(best.error < max * without)) continue;
    rescale->apply(model, {best.factors.begin(), best.factors.end()});
    ++count;
  }
  return count;
}

} // namespace firn::quantize
