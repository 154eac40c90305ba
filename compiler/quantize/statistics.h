// Statistics of the activations on the calibration data: their bounds, their largest value by channel, a
// histogram.
#pragma once

#include "compiler/quantize/options.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace firn::quantize {

struct Histogram {
  static constexpr int kBins = 2048;
  double low = 0, high = 0;    // bounds of the bins, 0 included
  double min = 0, max = 0;     // bounds of the values, 0 included
  int64_t zeros = 0;           // values that are 0, which every quantisation keeps
  std::vector<int64_t> counts; // by bin, values other than 0
  double center(int bin) const { return low + (high - low) * (bin + 0.5) / kBins; }
};

// The statistics of each channel of a tensor.
struct Channels {
  std::vector<float> low, high;
  std::vector<double> squares; // sums of squares
  int64_t places = 0;          // values in each channel
  int64_t rank = 0;            // rank of the tensor
  int64_t size() const { return static_cast<int64_t>(low.size()); }
};

class Statistics {
public:
  // The axis of channels of each tensor, which may count from behind.
  explicit Statistics(std::map<std::string, int> tensors) : axes_(std::move(tensors)) {}

  // Several statistics joined; their bins are the same.
  static Statistics merged(const std::vector<const Statistics*>& parts);

  // First all samples' bounds, then all samples' histograms, whose bins are those of `whole`, which knows
  // these bounds and perhaps more. What is no f32 is left out. An error names a value that is no number.
  Result add_bounds(const Sample& sample, const Tensors& tensors);
  void add_histogram(const Tensors& tensors, const Statistics& whole);

  bool has(const std::string& tensor) const { return bounds_.count(tensor) != 0; }
  // Whether it has one value only.
  bool is_constant(const std::string& tensor) const;
  // Nothing if the number of channels differs between samples.
  const Channels& channels(const std::string& tensor) const { return bounds_.at(tensor).channels; }
  const Histogram& histogram(const std::string& tensor) const { return histograms_.at(tensor); }

private:
  struct Bounds {
    float low = 0, high = 0;
    Channels channels;
    bool varies = false; // the number of channels does
    void merge(const Bounds& other);
  };
  std::map<std::string, int> axes_;
  std::map<std::string, Bounds> bounds_;
  std::map<std::string, Histogram> histograms_;
};

} // namespace firn::quantize
