// Text in upper or lower case.
#include "compiler/support/letter_case.h"

#include "compiler/support/utf8.h"
#include "include/firn/letter_case.h"

namespace firn {

std::string in_case(std::string_view text, bool upper) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    if (auto character = decode_utf8(text, at))
      append_utf8(detail::in_case(*character, upper), result);
    else
      result += text[at++];
  }
  return result;
}

} // namespace firn
