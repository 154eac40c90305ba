// Checks of the values that options take, which the parser runs and the help shows.
#pragma once

#include "compiler/support/diagnostic.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace firn::tool {

// One of these words.
CLI::Validator one_of(std::vector<std::string> words);
// A finite number of at least (or, with `above`, more than) `min`, at most `max`.
CLI::Validator number_between(double min, double max, bool above = false);
// A whole number in that range.
CLI::Validator whole_between(long long min, long long max);
// Any text but an empty one.
CLI::Validator not_empty();
// The bytes that the text, such as 64K, stands for; nothing for an empty text. An error names the option.
Result read_size(const char* option, const std::string& text, std::optional<int64_t>& bytes);

} // namespace firn::tool
