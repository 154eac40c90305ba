// Who gives loaded models and their instances memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace firn::driver {

// Keeps what it gives for as long as it lives.
class RunnerMemory {
public:
  virtual ~RunnerMemory() = default;
  virtual std::byte* allocate(int64_t bytes, int64_t alignment) = 0;
};

class HeapMemory final : public RunnerMemory {
public:
  std::byte* allocate(int64_t bytes, int64_t alignment) override;

private:
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

} // namespace firn::driver
