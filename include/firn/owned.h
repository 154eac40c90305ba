// firn::Owned<Model>: a model together with its arena from the heap, for programs that may allocate. One
// aligned allocation at construction, nothing later; if it fails, status() and run() say so.
#ifndef FIRN_OWNED_H
#define FIRN_OWNED_H

#include "firn/model.h"

#include <new>
#include <type_traits>

namespace firn {
inline namespace rt2 {

template <class Model> class Owned {
public:
  FIRN_HIDDEN Owned() noexcept : arena_(allocate()), model_(place_embedded(arena_)) {}
  FIRN_HIDDEN explicit Owned(const typename Model::Weights& weights) noexcept
      : arena_(allocate()), model_(place(arena_), weights) {}
  // The code for the CPU of that name, of an object for several.
  FIRN_HIDDEN Owned(const typename Model::Weights& weights, const char* cpu) noexcept
      : arena_(allocate()), model_(place(arena_), weights, cpu) {}
  FIRN_HIDDEN ~Owned() { release(); }
  FIRN_HIDDEN Owned(Owned&& other) noexcept
      : arena_(other.arena_), model_(static_cast<Model&&>(other.model_)) {
    other.arena_ = nullptr;
  }
  FIRN_HIDDEN Owned& operator=(Owned&& other) noexcept {
    if (this == &other) return *this;
    release();
    model_ = static_cast<Model&&>(other.model_);
    arena_ = other.arena_;
    other.arena_ = nullptr;
    return *this;
  }

  FIRN_HIDDEN Status status() const noexcept { return model_.status(); }
  FIRN_HIDDEN Model* operator->() noexcept { return &model_; }
  FIRN_HIDDEN const Model* operator->() const noexcept { return &model_; }
  FIRN_HIDDEN Model& operator*() noexcept { return model_; }
  FIRN_HIDDEN const Model& operator*() const noexcept { return model_; }

private:
  FIRN_HIDDEN static unsigned char* allocate() noexcept {
    return static_cast<unsigned char*>(::operator new(
        sizeof(typename Model::Arena), std::align_val_t(Model::arena_alignment), std::nothrow));
  }
  FIRN_HIDDEN void release() noexcept { ::operator delete(arena_, std::align_val_t(Model::arena_alignment)); }
  FIRN_HIDDEN static Model place_embedded(unsigned char* memory) noexcept {
    static_assert(
        std::is_constructible_v<Model, ByteSpan>,
        "this model's weights have to be prepared: construct it with Model::Weights::prepare(buffer)");
    if constexpr (std::is_constructible_v<Model, ByteSpan>) return Model(place(memory));
  }
  FIRN_HIDDEN static ByteSpan place(unsigned char* memory) noexcept {
    return ByteSpan(memory, memory ? sizeof(typename Model::Arena) : 0);
  }

  unsigned char* arena_; // owned
  Model model_;
};

} // namespace rt2
} // namespace firn

#endif
