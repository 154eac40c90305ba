// Many seeds, a few at a time, each in a process of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace firn::test {

struct CampaignOptions {
  uint64_t first = 0, end = 300; // seeds, without `end`
  int jobs = 1;
  int seconds = 120;             // computing time that one graph may take
  bool shrink = true;            // shrink failing graphs after the last seed
  bool limits = false;           // print why graphs are refused that may be
  bool gradient_objects = false; // compile a gradient of each graph with it
  int gradients = 0; // the order up to which graphs are derived, and not compiled; 0: they are compiled
  std::string write_folder; // failing graphs, shrunk, go to FOLDER/seed_N; "": they are not written
};

// Prints a line per failure, the shrunk graph of each, and the totals; returns the number of failures.
int run_campaign(const CampaignOptions& options);

} // namespace firn::test
