// Vector clocks that are made only when parts of a block synchronise.
#include "compiler/ptx/clocks.h"

#include <algorithm>

namespace firn::ptx {

Clocks::Clocks(uint32_t threads) : now_(threads, 1), warps_((threads + 31) / 32, 1) {}

void Clocks::join_block() {
  block_ = *std::max_element(now_.begin(), now_.end()) + 1;
  std::fill(now_.begin(), now_.end(), block_);
  std::fill(warps_.begin(), warps_.end(), block_);
  known_.clear();
}

void Clocks::join_warp(uint32_t warp) {
  size_t begin = size_t{warp} * 32, end = std::min(begin + 32, now_.size());
  if (!known_.empty()) {
    Knowledge knowledge;
    for (size_t t = begin; t < end; ++t) contribute(knowledge, static_cast<uint32_t>(t));
    for (size_t t = begin; t < end; ++t) learn(knowledge, static_cast<uint32_t>(t));
    return;
  }
  uint32_t time = 0;
  for (size_t t = begin; t < end; ++t) time = std::max(time, now_[t]);
  warps_[warp] = time + 1;
  for (size_t t = begin; t < end; ++t) now_[t] = time + 1;
}

void Clocks::begin_knowledge() {
  size_t threads = now_.size();
  known_.resize(threads * threads);
  for (size_t u = 0; u < threads; ++u)
    for (size_t t = 0; t < threads; ++t)
      known_[u * threads + t] = (u / 32 == t / 32 ? warps_[u / 32] : block_) - 1;
}

void Clocks::contribute(Knowledge& knowledge, uint32_t thread) {
  if (known_.empty()) begin_knowledge();
  size_t threads = now_.size();
  knowledge.resize(threads);
  for (size_t t = 0; t < threads; ++t) knowledge[t] = std::max(knowledge[t], known_[thread * threads + t]);
  knowledge[thread] = now_[thread]++;
}

void Clocks::learn(const Knowledge& knowledge, uint32_t thread) {
  if (known_.empty()) begin_knowledge();
  size_t threads = now_.size();
  for (size_t t = 0; t < threads; ++t)
    known_[thread * threads + t] = std::max(known_[thread * threads + t], knowledge[t]);
}

} // namespace firn::ptx
