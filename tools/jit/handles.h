// The opaque types of firn/jit_c.h, and functions that the parts of its implementation share.
#pragma once

#include "compiler/driver/guarded.h"
#include "compiler/driver/instance.h"
#include "tools/jit/compiler.h"

#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

struct firn_jit_messages {
  struct Message {
    int32_t kind;
    std::string text;
  };
  std::vector<Message> all;
};

struct firn_jit_model {
  explicit firn_jit_model(std::shared_ptr<const firn::library::Model> of) : model(std::move(of)) {}
  std::shared_ptr<const firn::library::Model> model;
  std::atomic<size_t> count{1};
};

namespace firn {

// Runs a body whose memory may run out; `failed` then.
template <class Value, class Body> Value shielded(Value failed, Body body) noexcept {
  try {
    return body();
  } catch (...) {
    return failed;
  }
}

// A tensor with these dims, which the result refers to.
inline firn_jit_tensor tensor_of(const driver::Instance::Slot& slot, const std::vector<int64_t>& dims) {
  const auto elements =
      static_cast<size_t>(std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<int64_t>()));
  return {slot.tensor->name.c_str(),
          driver::onnx_number(slot.tensor->dtype),
          static_cast<int32_t>(dims.size()),
          dims.data(),
          slot.memory,
          byte_size(slot.tensor->dtype, elements)};
}

} // namespace firn
