// The version of Firn, set by the build.
#pragma once

namespace firn::driver {

inline constexpr const char* kVersion = FIRN_VERSION;

} // namespace firn::driver
