// Who is told about loaded code.
#pragma once

namespace firn::load {

struct Visibility {
  bool debugger = false; // GDB and LLDB know the object
  bool perf = false;     // the file in which perf looks, /tmp/perf-PID.map, lists its functions
};

} // namespace firn::load
