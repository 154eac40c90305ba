// See runtime_symbols.h.
#include "compiler/driver/runtime_symbols.h"

#include "include/firn/text.h"

#include <cstring>

namespace firn::driver {
namespace {

template <class Result, class... Arguments> void* address(Result (*function)(Arguments...)) {
  return reinterpret_cast<void*>(function);
}

} // namespace

load::SymbolTable runtime_symbols() {
  return {
      {"memcpy", address(&std::memcpy)},
      {"memmove", address(&std::memmove)},
      {"memset", address(&std::memset)},
      {"firn_rt2_text_constants", address(&firn_rt2_text_constants)},
      {"firn_rt2_text_compare", address(&firn_rt2_text_compare)},
      {"firn_rt2_text_find", address(&firn_rt2_text_find)},
      {"firn_rt2_text_concatenate", address(&firn_rt2_text_concatenate)},
      {"firn_rt2_text_case", address(&firn_rt2_text_case)},
      {"firn_rt2_text_match", address(&firn_rt2_text_match)},
      {"firn_rt2_text_split", address(&firn_rt2_text_split)},
      {"firn_rt2_text_to_reals", address(&firn_rt2_text_to_reals)},
      {"firn_rt2_text_to_integers", address(&firn_rt2_text_to_integers)},
      {"firn_rt2_text_of_reals", address(&firn_rt2_text_of_reals)},
      {"firn_rt2_text_of_integers", address(&firn_rt2_text_of_integers)},
  };
}

} // namespace firn::driver
