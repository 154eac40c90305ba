// Tells debuggers and perf about code in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace firn::load {

struct Function;

// An object that debuggers know, by the interface that GDB defines and LLDB follows, until the destructor.
class DebuggerEntry {
public:
  // Copies the object, and notes the addresses of its sections in the copy.
  DebuggerEntry(std::span<const std::byte> object, const std::map<std::string, uint64_t>& sections);
  ~DebuggerEntry();
  DebuggerEntry(const DebuggerEntry&) = delete;

private:
  struct Entry;
  std::vector<std::byte> object_;
  std::unique_ptr<Entry> entry_;
};

// Appends the functions to the file in which perf looks for those of this process. perf reads it after the
// run: entries of code that is gone stay.
void list_for_perf(std::span<const Function> functions);

} // namespace firn::load
