// Many seeds, a few at a time, each in a process of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace firn::test {

struct CampaignOptions {
  uint64_t first = 0, end = 300; // seeds
  int jobs = 1;
  int seconds = 120;        // that one graph may take
  bool shrink = true;       // failing graphs, after the last seed
  bool limits = false;      // say why graphs are refused whose dims vary
  std::string write_folder; // failing graphs, shrunk, go to FOLDER/seed_N; "": they are not written
};

// Prints a line per failure and what it shrinks to, and the totals. The number of failures.
int run_campaign(const CampaignOptions& options);

} // namespace firn::test
