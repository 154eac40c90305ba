// The text of packings.
#include "compiler/support/packing.h"
#include "compiler/support/text_scanner.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

namespace firn {
namespace {

std::string joined(size_t count, const std::function<int64_t(size_t)>& value) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += (i > 0 ? "x" : "") + std::to_string(value(i));
  return text;
}

std::string to_string(const TransformMatrix& matrix) {
  std::string text = std::to_string(matrix.rows) + "x" + std::to_string(matrix.columns) + " [";
  for (size_t i = 0; i < matrix.values.size(); ++i) {
    char number[40];
    std::snprintf(number, sizeof number, "%s%.17g", i > 0 ? ", " : "", matrix.values[i]);
    text += number;
  }
  return text + "]";
}

std::string to_string(const PackedBox& box) {
  size_t rank = box.dims.size();
  std::string text = joined(rank, [&](size_t i) { return box.dims[i].extent; });
  text += " to " + joined(rank, [&](size_t i) { return box.dims[i].packed; });
  text += " from " + joined(rank, [&](size_t i) { return box.dims[i].source; });
  text += " at " + std::to_string(box.packed) + " of " + std::to_string(box.source);
  if (box.item_dims > 0) text += " items " + std::to_string(box.item_dims);
  for (const PackedBox::Bound& bound : box.bounds)
    text += " below " + std::to_string(bound.end) + " of " + std::to_string(bound.first) + " by " +
            joined(rank, [&](size_t i) { return bound.strides[i]; });
  return text;
}

class PackingParser {
public:
  explicit PackingParser(std::string_view text) : scan_("packing", text) {}

  Expected<Packing> run() {
    Packing packing;
    packing.element_bytes = static_cast<int>(integer());
    scan_.expect("bytes");
    scan_.expect(",");
    packing.packed_elements = integer();
    scan_.expect("of");
    packing.source_elements = integer();
    if (scan_.accept("transform")) {
      TransformMatrix height = matrix(), width = matrix();
      packing.transform = TapTransform{std::move(height), std::move(width)};
    }
    while (!scan_.failed() && scan_.accept(";")) packing.boxes.push_back(box());
    if (!scan_.failed() && !scan_.at_end()) scan_.fail("expected ';'");
    if (!scan_.failed()) check(packing);
    if (scan_.failed()) return scan_.error();
    return packing;
  }

private:
  static constexpr int64_t kMaxElements = int64_t{1} << 48;
  static constexpr size_t kMaxDims = 16;
  static constexpr int kMaxMatrix = 8;
  static constexpr int64_t kMaxBoundedSteps = 1 << 16;

  int64_t integer() {
    int64_t value = 0;
    if (!scan_.failed() && !scan_.integer(value)) scan_.fail("expected a number");
    if (value < 0 || value > kMaxElements) scan_.fail("a number out of range"), value = 0;
    return value;
  }

  // "4x9x16"
  std::vector<int64_t> integers() {
    std::vector<int64_t> values;
    std::string text(scan_.word_with("x"));
    for (size_t at = 0; at <= text.size() && !scan_.failed();) {
      size_t end = std::min(text.find('x', at), text.size());
      std::string digits = text.substr(at, end - at);
      if (digits.empty() || digits.size() > 15 || digits.find_first_not_of("0123456789") != std::string::npos)
        scan_.fail("expected numbers such as 4x9x16");
      else
        values.push_back(std::stoll(digits));
      at = end + 1;
    }
    return values;
  }

  TransformMatrix matrix() {
    TransformMatrix matrix;
    std::vector<int64_t> dims = integers();
    if (dims.size() != 2 || dims[0] < 1 || dims[1] < 1 || dims[0] > kMaxMatrix || dims[1] > kMaxMatrix) {
      scan_.fail("expected a matrix");
      return matrix;
    }
    matrix.rows = static_cast<int>(dims[0]);
    matrix.columns = static_cast<int>(dims[1]);
    scan_.expect("[");
    for (int i = 0; i < matrix.rows * matrix.columns && !scan_.failed(); ++i) {
      double value = 0;
      if (i > 0) scan_.expect(",");
      if (!scan_.number(value) || !std::isfinite(value)) scan_.fail("expected a number");
      matrix.values.push_back(value);
    }
    scan_.expect("]");
    return matrix;
  }

  PackedBox box() {
    PackedBox box;
    std::vector<int64_t> extents = integers();
    scan_.expect("to");
    std::vector<int64_t> packed = integers();
    scan_.expect("from");
    std::vector<int64_t> source = integers();
    scan_.expect("at");
    box.packed = integer();
    scan_.expect("of");
    box.source = integer();
    if (scan_.accept("items")) box.item_dims = static_cast<int>(integer());
    if (extents.size() != packed.size() || extents.size() != source.size() || extents.size() > kMaxDims) {
      scan_.fail("a box whose parts have different numbers of dims");
      return box;
    }
    for (size_t i = 0; i < extents.size(); ++i) box.dims.push_back({extents[i], packed[i], source[i]});
    while (!scan_.failed() && scan_.accept("below")) {
      PackedBox::Bound bound;
      bound.end = integer();
      scan_.expect("of");
      bound.first = integer();
      scan_.expect("by");
      bound.strides = integers();
      if (bound.strides.size() != box.dims.size()) scan_.fail("a bound of another number of dims");
      box.bounds.push_back(std::move(bound));
    }
    return box;
  }

  // Elements that boxes reach, as far as that can be said without their bounds, and their number.
  void check(const Packing& packing) {
    int bytes = packing.element_bytes;
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) scan_.fail("elements of so many bytes");
    if (packing.transform && bytes != 4) scan_.fail("a transform of other elements than f32");
    int64_t written = 0;
    for (const PackedBox& box : packing.boxes) {
      check(packing, box);
      if (scan_.failed()) return;
      written += box.elements();
    }
    if (written != packing.packed_elements) scan_.fail("boxes that do not fill the packed constant");
  }

  void check(const Packing& packing, const PackedBox& box) {
    size_t min = packing.transform ? 2 : 1;
    if (box.dims.size() < min || box.bounds.size() > PackedBox::kMaxBounds ||
        static_cast<size_t>(box.item_dims) + min > box.dims.size())
      scan_.fail("a box of other dims than packings have");
    double elements = 1, last = static_cast<double>(box.packed);
    for (const PackedDim& dim : box.dims) {
      if (dim.extent < 1) scan_.fail("a dim without elements");
      elements *= static_cast<double>(dim.extent);
      last += static_cast<double>(dim.extent - 1) * static_cast<double>(dim.packed);
    }
    if (elements > static_cast<double>(packing.packed_elements) ||
        last >= static_cast<double>(packing.packed_elements))
      scan_.fail("a box beyond the packed constant");
    for (size_t i = 0; !scan_.failed() && i < static_cast<size_t>(box.item_dims); ++i)
      if (is_bounded(box, i)) scan_.fail("items under a bound");
    if (!scan_.failed() && packing.transform && box.dims.back().extent != packing.transform->points())
      scan_.fail("a last dim without the points of the transform");
    if (!scan_.failed()) check_reads(packing, box);
  }

  // Bounded dims are walked through: they are vectors and lanes at the end of a packed constant.
  void check_reads(const Packing& packing, const PackedBox& box) {
    double end = static_cast<double>(packing.source_elements), last = static_cast<double>(box.source);
    if (packing.transform) end = end / packing.transform->taps() * packing.transform->points();
    int64_t steps = 1;
    for (size_t i = 0; i < box.dims.size(); ++i)
      if (is_bounded(box, i))
        steps = std::min(kMaxBoundedSteps + 1, steps) * std::min(kMaxBoundedSteps + 1, box.dims[i].extent);
      else
        last += static_cast<double>(box.dims[i].extent - 1) * static_cast<double>(box.dims[i].source);
    if (steps > kMaxBoundedSteps) return void(scan_.fail("bounds over so many elements"));
    std::vector<int64_t> at(box.dims.size(), 0);
    if (last + furthest(box, 0, at) >= end) scan_.fail("a box that reads beyond the source");
  }

  static bool is_bounded(const PackedBox& box, size_t dim) {
    return std::any_of(box.bounds.begin(), box.bounds.end(),
                       [&](const PackedBox::Bound& bound) { return bound.strides[dim] > 0; });
  }

  // The furthest distance from the box's first element that the bounded dims from `dim` on read at; far below
  // zero if nothing is read.
  double furthest(const PackedBox& box, size_t dim, std::vector<int64_t>& at) {
    if (dim == box.dims.size()) {
      for (const PackedBox::Bound& bound : box.bounds) {
        double sum = static_cast<double>(bound.first);
        for (size_t i = 0; i < at.size(); ++i)
          sum += static_cast<double>(at[i]) * static_cast<double>(bound.strides[i]);
        if (sum >= static_cast<double>(bound.end)) return -1e300;
      }
      return 0;
    }
    double max = -1e300;
    for (int64_t i = 0; i < (is_bounded(box, dim) ? box.dims[dim].extent : 1); ++i) {
      at[dim] = i;
      double step = static_cast<double>(i) * static_cast<double>(box.dims[dim].source);
      max = std::max(max, step + furthest(box, dim + 1, at));
    }
    at[dim] = 0;
    return max;
  }

  TextScanner scan_;
};

} // namespace

std::string to_string(const Packing& packing) {
  std::string text = std::to_string(packing.element_bytes) + " bytes, " +
                     std::to_string(packing.packed_elements) + " of " +
                     std::to_string(packing.source_elements);
  if (packing.transform)
    text += " transform " + to_string(packing.transform->height) + " " + to_string(packing.transform->width);
  for (const PackedBox& box : packing.boxes) text += "; " + to_string(box);
  return text;
}

Expected<Packing> parse_packing(std::string_view text) {
  return PackingParser(text).run();
}

} // namespace firn
