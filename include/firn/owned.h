// firn::Owned<Model>: a model together with its arena from the heap, for programs that may allocate. One
// aligned allocation at construction, nothing later; if it fails, status() and run() say so.
#ifndef FIRN_OWNED_H
#define FIRN_OWNED_H

#include "firn/model.h"

#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace firn {
inline namespace rt1 {

template <class Model> class Owned {
public:
  Owned() noexcept : arena_(allocate()), model_(place_embedded(arena_.get())) {}
  explicit Owned(const typename Model::Weights& weights) noexcept
      : arena_(allocate()), model_(place(arena_.get()), weights) {}
  Owned(Owned&&) noexcept = default;
  Owned& operator=(Owned&& other) noexcept {
    model_ = std::move(other.model_);
    arena_ = std::move(other.arena_);
    return *this;
  }

  Status status() const noexcept { return model_.status(); }
  Model* operator->() noexcept { return &model_; }
  const Model* operator->() const noexcept { return &model_; }
  Model& operator*() noexcept { return model_; }
  const Model& operator*() const noexcept { return model_; }

private:
  struct Release {
    void operator()(unsigned char* memory) const noexcept {
      ::operator delete(memory, std::align_val_t(Model::arena_alignment));
    }
  };
  using Memory = std::unique_ptr<unsigned char, Release>;

  static Memory allocate() noexcept {
    void* memory =
        ::operator new(sizeof(typename Model::Arena), std::align_val_t(Model::arena_alignment), std::nothrow);
    return Memory(static_cast<unsigned char*>(memory));
  }
  static Model place_embedded(unsigned char* memory) noexcept {
    static_assert(
        std::is_constructible_v<Model, ByteSpan>,
        "this model's weights have to be prepared: construct it with Model::Weights::prepare(buffer)");
    if constexpr (std::is_constructible_v<Model, ByteSpan>) return Model(place(memory));
  }
  static ByteSpan place(unsigned char* memory) noexcept {
    return ByteSpan(memory, memory ? sizeof(typename Model::Arena) : 0);
  }

  Memory arena_;
  Model model_;
};

} // namespace rt1
} // namespace firn

#endif
