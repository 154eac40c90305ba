// Lays out rows of leaves: the next row is one that begins with most of what stands at the end.
#include "compiler/plan/trees/leaf_pool.h"

#include <algorithm>

namespace firn::plan {
namespace {

// Longer beginnings of rows are not looked for: tables of them would outgrow the rows.
constexpr size_t kMaxOverlap = 7;

} // namespace

LeafPool::LeafPool(LiteralRef values, int64_t columns)
    : values_(std::move(values)), element_bytes_(static_cast<size_t>(bit_width(values_->dtype())) / 8),
      row_bytes_(element_bytes_ * static_cast<size_t>(columns)) {}

int64_t LeafPool::number_of(int64_t row) {
  auto bytes = values_->bytes().subspan(static_cast<size_t>(row) * row_bytes_, row_bytes_);
  std::string key(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  auto [known, fresh] = numbers_.emplace(key, static_cast<int64_t>(rows_.size()));
  if (fresh) rows_.push_back(std::move(key));
  return known->second;
}

void LeafPool::append(const std::string& row, size_t overlap) {
  size_t first = bytes_.size() >= row_bytes_ ? bytes_.size() - row_bytes_ + element_bytes_ : 0;
  bytes_ += row.substr(overlap);
  for (size_t at = first; at + row_bytes_ <= bytes_.size(); at += element_bytes_)
    places_.emplace(bytes_.substr(at, row_bytes_), static_cast<int64_t>(at / element_bytes_));
}

std::vector<int64_t> LeafPool::lay_out() {
  size_t longest = std::min(row_bytes_ / element_bytes_ - 1, kMaxOverlap) * element_bytes_;
  std::map<std::string, std::vector<size_t>> by_start;
  for (size_t row = 0; row < rows_.size(); ++row)
    for (size_t bytes = longest; bytes > 0; bytes -= element_bytes_)
      by_start[rows_[row].substr(0, bytes)].push_back(row);
  auto is_placed = [&](size_t row) { return places_.count(rows_[row]) != 0; };
  for (size_t start = 0; start < rows_.size(); ++start) {
    size_t row = start, overlap = 0;
    while (!is_placed(row)) {
      append(rows_[row], overlap);
      for (overlap = longest; overlap > 0; overlap -= element_bytes_) {
        auto found = by_start.find(bytes_.substr(bytes_.size() - overlap));
        if (found == by_start.end()) continue;
        std::vector<size_t>& open = found->second;
        while (!open.empty() && is_placed(open.back())) open.pop_back();
        if (open.empty()) continue;
        row = open.back();
        break;
      }
      if (overlap == 0) break;
    }
  }
  std::vector<int64_t> places;
  for (const std::string& row : rows_) places.push_back(places_.at(row));
  return places;
}

LiteralRef LeafPool::elements() const {
  auto made = std::make_shared<Literal>(values_->dtype(),
                                        std::vector{static_cast<int64_t>(bytes_.size() / element_bytes_)});
  std::memcpy(made->mutable_bytes().data(), bytes_.data(), bytes_.size());
  return made;
}

} // namespace firn::plan
