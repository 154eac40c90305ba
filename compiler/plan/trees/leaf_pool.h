// The rows of values that leaves hold, each different one once and overlapping where one ends as another
// begins.
#pragma once

#include "compiler/graph/literal.h"

#include <map>
#include <string>
#include <vector>

namespace firn::plan {

class LeafPool {
public:
  // Rows of `columns` elements of `values`.
  LeafPool(LiteralRef values, int64_t columns);
  // The number of the row's values among different ones, from 0 in the order of calls.
  int64_t number_of(int64_t row);
  // Lays out all rows that were numbered, and returns where each begins, in elements.
  std::vector<int64_t> lay_out();
  // The elements that hold all rows, after lay_out().
  LiteralRef elements() const;

private:
  void append(const std::string& row, size_t overlap);

  LiteralRef values_;
  size_t element_bytes_, row_bytes_;
  std::vector<std::string> rows_;
  std::map<std::string, int64_t> numbers_;
  std::string bytes_;
  std::map<std::string, int64_t> places_; // places of all stretches as long as a row
};

} // namespace firn::plan
