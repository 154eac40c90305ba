// A sink takes the bytes of an output in their order: a file does (output_set.h), memory, or nothing.
#pragma once

#include "compiler/support/diagnostic.h"

#include <string>
#include <string_view>

namespace firn {

class ByteSink {
public:
  ByteSink() = default;
  ByteSink(const ByteSink&) = delete;
  ByteSink& operator=(const ByteSink&) = delete;
  virtual ~ByteSink() = default;
  // Tells how many bytes will come, before the first.
  virtual void expect(size_t /*size*/) {}
  virtual Result write(std::string_view bytes) = 0;
};

class MemorySink final : public ByteSink {
public:
  void expect(size_t size) override { bytes_.reserve(size); }
  Result write(std::string_view bytes) override {
    bytes_ += bytes;
    return {};
  }
  std::string take() { return std::move(bytes_); }

private:
  std::string bytes_;
};

// Takes an output of which only the facts are wanted.
class DiscardingSink final : public ByteSink {
public:
  Result write(std::string_view /*bytes*/) override { return {}; }
};

} // namespace firn
