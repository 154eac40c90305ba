// A ramp with one spike, filtered by a model whose operator is this program's own: median_filter.c.
#include "filter.h"

#include <firn/owned.h>

#include <cstdio>

int main() {
  firn::Owned<audio::Filter> filter;
  if (!filter->status()) {
    std::fprintf(stderr, "%s\n", filter->status().message());
    return 1;
  }
  if (!filter->set_channels(1)) return 1;
  auto signal = filter->signal();
  for (std::size_t i = 0; i < signal.size(); ++i) signal.data()[i] = 0.01f * static_cast<float>(i);
  signal(0, 70) += 2;
  if (firn::Status status = filter->run(); !status) {
    std::fprintf(stderr, "%s\n", status.message());
    return 1;
  }
  std::printf("at 70: %.2f, largest spike: %.1f\n", filter->clean()(0, 70), filter->largest_spike()(0));
}
