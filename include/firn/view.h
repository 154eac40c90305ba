// Views of tensors: a pointer with extents, static where the model fixes them. Row-major and compact, never
// owning; indices are not checked.
#ifndef FIRN_VIEW_H
#define FIRN_VIEW_H

#include "firn/abi.h"

#include <cstddef>
#include <type_traits>
#if __cplusplus >= 202002L && __has_include(<span>)
#include <span>
#include <version>
#endif

namespace firn {
inline namespace rt2 {

// An extent that is known only at run time.
FIRN_HIDDEN inline constexpr std::size_t dynamic = static_cast<std::size_t>(-1);

namespace detail {

// The run-time part of a view's extents; empty when all are static.
template <std::size_t count> struct DynamicExtents {
  std::size_t values[count] = {};
  FIRN_HIDDEN constexpr std::size_t get(std::size_t i) const noexcept { return values[i]; }
};
template <> struct DynamicExtents<0> {
  FIRN_HIDDEN constexpr std::size_t get(std::size_t) const noexcept { return 0; }
};

template <std::size_t... dims> struct Shape {
  FIRN_HIDDEN static constexpr std::size_t rank = sizeof...(dims);
  FIRN_HIDDEN static constexpr std::size_t dynamic_count =
      (std::size_t{0} + ... + (dims == dynamic ? 1u : 0u));
  using Extents = DynamicExtents<dynamic_count>;

  FIRN_HIDDEN static constexpr std::size_t extent(const Extents& extents, std::size_t axis) noexcept {
    constexpr std::size_t table[rank + 1] = {dims..., 0};
    if (table[axis] != dynamic) return table[axis];
    std::size_t before = 0;
    for (std::size_t i = 0; i < axis; ++i) before += table[i] == dynamic ? 1u : 0u;
    return extents.get(before);
  }
  FIRN_HIDDEN static constexpr std::size_t size(const Extents& extents) noexcept {
    std::size_t product = 1;
    for (std::size_t i = 0; i < rank; ++i) product *= extent(extents, i);
    return product;
  }
  template <class... Indices>
  FIRN_HIDDEN_TEMPLATE static constexpr std::size_t offset(const Extents& extents,
                                                           Indices... indices) noexcept {
    static_assert(sizeof...(Indices) == rank, "one index per dimension");
    static_assert((std::is_integral_v<Indices> && ...), "indices are integers");
    std::size_t result = 0;
    std::size_t axis = 0;
    ((result = result * extent(extents, axis++) + static_cast<std::size_t>(indices)), ...);
    static_cast<void>(axis);
    static_cast<void>(extents);
    return result;
  }
};

template <class T, std::size_t... dims> struct Row;

} // namespace detail

// view(i, j, k) is an element, view[i] a row (an element when the rank is 1); begin() to end() are all
// elements in order, so a View is a contiguous range and converts to std::span.
template <class T, std::size_t... dims> class View : private detail::Shape<dims...>::Extents {
  using Shape = detail::Shape<dims...>;
  using Extents = typename Shape::Extents;

public:
  using element_type = T;
  using value_type = std::remove_const_t<T>;
  FIRN_HIDDEN static constexpr std::size_t rank = Shape::rank;
  FIRN_HIDDEN static constexpr std::size_t dynamic_extents = Shape::dynamic_count;

  FIRN_HIDDEN constexpr View() noexcept = default;
  // `counts` are the extents of the dynamic dimensions, in order.
  template <class... Counts>
  FIRN_HIDDEN_TEMPLATE explicit constexpr View(T* data, Counts... counts) noexcept : data_(data) {
    static_assert(sizeof...(Counts) == dynamic_extents, "one extent per dynamic dimension");
    [[maybe_unused]] std::size_t i = 0;
    if constexpr (dynamic_extents > 0) ((Extents::values[i++] = static_cast<std::size_t>(counts)), ...);
  }
  FIRN_HIDDEN constexpr operator View<const T, dims...>() const noexcept {
    if constexpr (dynamic_extents == 0) {
      return View<const T, dims...>(data_);
    } else {
      View<const T, dims...> result;
      result.data_ = data_;
      for (std::size_t i = 0; i < dynamic_extents; ++i) result.values[i] = Extents::values[i];
      return result;
    }
  }

  FIRN_HIDDEN constexpr T* data() const noexcept { return data_; }
  FIRN_HIDDEN constexpr std::size_t extent(std::size_t axis) const noexcept {
    return Shape::extent(extents(), axis);
  }
  FIRN_HIDDEN constexpr std::size_t size() const noexcept { return Shape::size(extents()); }
  FIRN_HIDDEN constexpr std::size_t size_bytes() const noexcept { return size() * sizeof(T); }
  FIRN_HIDDEN constexpr T* begin() const noexcept { return data_; }
  FIRN_HIDDEN constexpr T* end() const noexcept { return data_ + size(); }

  template <class... Indices>
  FIRN_HIDDEN_TEMPLATE constexpr T& operator()(Indices... indices) const noexcept {
    return data_[Shape::offset(extents(), indices...)];
  }
  template <class Index>
  FIRN_HIDDEN_TEMPLATE constexpr decltype(auto) operator[](Index index) const noexcept {
    static_assert(rank > 0, "a scalar has no rows");
    return detail::Row<T, dims...>::at(data_, extents(), static_cast<std::size_t>(index));
  }

private:
  template <class, std::size_t...> friend class View;
  template <class, std::size_t...> friend struct detail::Row;
  FIRN_HIDDEN constexpr const Extents& extents() const noexcept { return *this; }
  T* data_ = nullptr;
};

namespace detail {

template <class T, std::size_t first> struct Row<T, first> {
  FIRN_HIDDEN static constexpr T& at(T* data, const typename Shape<first>::Extents&,
                                     std::size_t index) noexcept {
    return data[index];
  }
};

template <class T, std::size_t first, std::size_t second, std::size_t... rest>
struct Row<T, first, second, rest...> {
  FIRN_HIDDEN static constexpr View<T, second, rest...>
  at(T* data, const typename Shape<first, second, rest...>::Extents& extents, std::size_t index) noexcept {
    View<T, second, rest...> row;
    if constexpr (View<T, second, rest...>::dynamic_extents > 0) {
      constexpr std::size_t skipped = first == dynamic ? 1 : 0;
      for (std::size_t i = 0; i < row.dynamic_extents; ++i) row.values[i] = extents.get(i + skipped);
    }
    row.data_ = data + index * row.size();
    return row;
  }
};

} // namespace detail

// A view of elements below one byte (firn::int4 and its like), addressed by value: `v(i, j)` reads,
// `v(i, j) = 3` writes.
template <class Element, std::size_t... dims> class PackedView {
  using Shape = detail::Shape<dims...>;
  using Traits = std::remove_const_t<Element>;
  using Byte = std::conditional_t<std::is_const_v<Element>, const unsigned char, unsigned char>;

public:
  using element_type = Element;
  using value_type = typename Traits::value_type;
  FIRN_HIDDEN static constexpr std::size_t rank = Shape::rank;
  FIRN_HIDDEN static constexpr std::size_t elements_per_byte = 8 / Traits::bits;

  class Reference {
  public:
    FIRN_HIDDEN operator value_type() const noexcept { return Traits::decode((*byte_ >> shift_) & mask); }
    FIRN_HIDDEN const Reference& operator=(value_type value) const noexcept {
      const unsigned kept = *byte_ & ~(mask << shift_);
      *byte_ = static_cast<unsigned char>(kept | (Traits::encode(value) << shift_));
      return *this;
    }
    FIRN_HIDDEN const Reference& operator=(const Reference& other) const noexcept {
      return *this = static_cast<value_type>(other);
    }
    FIRN_HIDDEN Reference(const Reference&) = default;

  private:
    friend class PackedView;
    FIRN_HIDDEN static constexpr unsigned mask = (1u << Traits::bits) - 1u;
    FIRN_HIDDEN Reference(Byte* byte, unsigned shift) noexcept : byte_(byte), shift_(shift) {}
    Byte* byte_;
    unsigned shift_;
  };

  FIRN_HIDDEN constexpr PackedView() noexcept = default;
  template <class... Extents>
  FIRN_HIDDEN_TEMPLATE explicit constexpr PackedView(Byte* data, Extents... extents) noexcept : data_(data) {
    static_assert(sizeof...(Extents) == Shape::dynamic_count, "one extent per dynamic dimension");
    [[maybe_unused]] std::size_t i = 0;
    if constexpr (Shape::dynamic_count > 0) ((extents_.values[i++] = static_cast<std::size_t>(extents)), ...);
  }

  FIRN_HIDDEN constexpr Byte* data() const noexcept { return data_; }
  FIRN_HIDDEN constexpr std::size_t extent(std::size_t axis) const noexcept {
    return Shape::extent(extents_, axis);
  }
  FIRN_HIDDEN constexpr std::size_t size() const noexcept { return Shape::size(extents_); }
  FIRN_HIDDEN constexpr std::size_t size_bytes() const noexcept {
    return (size() + elements_per_byte - 1) / elements_per_byte;
  }
  template <class... Indices> FIRN_HIDDEN_TEMPLATE Reference operator()(Indices... indices) const noexcept {
    return flat(Shape::offset(extents_, indices...));
  }
  // The element at a row-major position.
  FIRN_HIDDEN Reference flat(std::size_t index) const noexcept {
    return Reference(data_ + index / elements_per_byte,
                     static_cast<unsigned>(index % elements_per_byte) * Traits::bits);
  }

private:
  Byte* data_ = nullptr;
  typename Shape::Extents extents_{};
};

// Row-major position of the largest element, the first of equals; NaNs are passed over. 0 for an empty view.
template <class T, std::size_t... dims>
FIRN_HIDDEN constexpr std::size_t argmax(View<T, dims...> view) noexcept {
  std::size_t best = 0;
  bool found = false;
  for (std::size_t i = 0; i < view.size(); ++i) {
    const auto value = view.data()[i];
    if (value != value || (found && !(value > view.data()[best]))) continue;
    best = i;
    found = true;
  }
  return best;
}

} // namespace rt2
} // namespace firn

#if defined(__cpp_lib_span) && defined(__cpp_lib_ranges)
// The elements outlive the View: a std::span may be made of a temporary.
template <class T, std::size_t... dims>
inline constexpr bool std::ranges::enable_borrowed_range<firn::View<T, dims...>> = true;
template <class T, std::size_t... dims>
inline constexpr bool std::ranges::enable_view<firn::View<T, dims...>> = true;
#endif

#endif
