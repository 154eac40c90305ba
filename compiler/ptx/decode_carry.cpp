// Arithmetic of many words: sums, differences and products that read or write the carry of each lane.
#include "compiler/ptx/decoder.h"
#include "compiler/ptx/lanewise.h"

namespace firn::ptx {
namespace {

enum class Part { Sum, Difference, Low, High };
constexpr int kReads = 4, kWrites = 8; // added to the part in `form`

// d = a + b, a - b, or half of a * b, + c for products; the carry or borrow is row e.
template <class T, class Wide> void carry_lanes(Warp& warp, const Op& op, uint32_t mask) {
  constexpr int kBits = sizeof(T) * 8;
  auto part = static_cast<Part>(op.form & 3);
  uint32_t carries = warp.mask_row(op.e), made = 0;
  each_lane(mask, [&](int lane) {
    auto a = static_cast<T>(warp.row(op.a)[lane]), b = static_cast<T>(warp.row(op.b)[lane]);
    Wide carry = op.form & kReads ? carries >> lane & 1 : 0;
    Wide result;
    if (part == Part::Sum) {
      result = Wide{a} + b + carry;
    } else if (part == Part::Difference) {
      result = Wide{a} - b - carry;
    } else {
      Wide product = Wide{a} * b;
      T half = static_cast<T>(part == Part::High ? product >> kBits : product);
      result = Wide{half} + static_cast<T>(warp.row(op.c)[lane]) + carry;
    }
    warp.row(op.d)[lane] = static_cast<T>(result);
    made |= static_cast<uint32_t>(result >> kBits != 0) << lane;
  });
  if (op.form & kWrites) warp.mask_row(op.e) = (carries & ~mask) | made;
}

} // namespace

void decode_carry(Decoder& decoder, Type type, bool reads, bool writes) {
  std::string_view opcode = decoder.opcode();
  bool is_product = opcode[0] == 'm';
  bool is_high = is_product && decoder.take("hi");
  if (is_product && !is_high && !decoder.take("lo")) return decoder.unsupported_opcode();
  bool is_signed_high = is_high && is_signed(type);
  if (!is_integer(type) || size_of(type) < 4 || is_signed_high) return decoder.unsupported_opcode();
  if (!decoder.expect_operands(is_product ? 4 : 3)) return;
  Part part = is_high ? Part::High : is_product ? Part::Low : opcode[0] == 'a' ? Part::Sum : Part::Difference;
  Op op = decoder.begin(OpClass::Integer);
  op.d = decoder.target(size_t{0}, type);
  op.a = decoder.source(1, type);
  op.b = decoder.source(2, type);
  if (is_product) op.c = decoder.source(3, type);
  op.e = decoder.carry_row();
  op.form = static_cast<int>(part) | (reads ? kReads : 0) | (writes ? kWrites : 0);
  op.execute =
      size_of(type) == 4 ? carry_lanes<uint32_t, uint64_t> : carry_lanes<uint64_t, unsigned __int128>;
  decoder.emit(op);
}

} // namespace firn::ptx
