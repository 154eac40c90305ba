// Versions of systems that triples leave open.
#pragma once

#include <string>
#include <string_view>

namespace firn {

// "ios14.0": the oldest system that objects run on, if the triple names one of Apple's without a version;
// else empty. An empty triple is that of `cpu`, or this machine's.
std::string assumed_version(std::string_view triple, std::string_view cpu);

} // namespace firn
