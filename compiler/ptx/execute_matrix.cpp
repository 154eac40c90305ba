// Products of small matrices whose elements are spread over the lanes of a warp, and the loads that spread
// them.
//
// A sum of products is formed in double and rounded once at the end: PTX leaves order and width of the
// additions open, so that results of a GPU differ in the last bits of f32.
#include "compiler/ptx/block.h"
#include "compiler/ptx/execute.h"

#include <algorithm>
#include <cstring>

namespace firn::ptx {
namespace {

bool is_whole_warp(Warp& warp, const Op& op, uint32_t mask) {
  if (mask == ~0u) return true;
  if (warp.existing == ~0u && (warp.alive() & ~mask) != 0 && warp.alive() == ~0u)
    return warp.meet(op, mask, ~0u); // the other lanes may come to it later
  warp.fail(op, std::countr_zero(mask), "an operation of a whole warp is executed by a part of its lanes");
  return false;
}

int bits_of(Type type) {
  return size_of(type) * 8;
}
int elements_of(Type type) {
  return type == Type::F64 ? 1 : 32 / bits_of(type);
}

// One element of a factor; integers are exact in double.
double factor(Type type, uint64_t bits) {
  switch (type) {
  case Type::F16: return widen(bits & 0xffff, kF16);
  case Type::BF16: return Bits<float>::from(bits << 16);
  case Type::TF32: return Bits<float>::from(bits & ~uint64_t{0x1fff});
  case Type::E4M3: return widen(bits & 0xff, kE4M3);
  case Type::E5M2: return widen(bits & 0xff, kE5M2);
  case Type::S8: return static_cast<int8_t>(bits);
  case Type::U8: return static_cast<uint8_t>(bits);
  default: return Bits<double>::from(bits);
  }
}

struct Rows {
  const uint32_t* first;
  uint32_t count;
};

// The parts of a matrix operation in its kernel's list: see decode_matrix.cpp.
struct MatrixOperands {
  MatrixShape shape;
  Rows d, a, b, c;
  MatrixOperands(const uint32_t* list) {
    shape = {static_cast<int>(list[0]),  static_cast<int>(list[1]),  static_cast<int>(list[2]),
             static_cast<Type>(list[3]), static_cast<Type>(list[4]), static_cast<Type>(list[5]),
             static_cast<Type>(list[6])};
    const uint32_t* rows = list + 11;
    Rows* parts[] = {&d, &a, &b, &c};
    for (int i = 0; i < 4; ++i) {
      *parts[i] = {rows, list[7 + i]};
      rows += list[7 + i];
    }
  }
};

// Lane l holds e neighbours along k of each register; group = l / 4 names the row of A or the column of B.
void gather_factor(Warp& warp, Type type, Rows rows, int outer, int k, double* matrix) {
  int e = elements_of(type);
  for (uint32_t r = 0; r < rows.count; ++r) {
    const uint64_t* row = warp.row(rows.first[r]);
    int high = outer == 16 ? static_cast<int>(r & 1) * 8 : 0;
    int along = static_cast<int>(outer == 16 ? r >> 1 : r) * 4 * e;
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < e; ++i)
        matrix[(lane / 4 + high) * k + along + e * (lane % 4) + i] =
            factor(type, e == 1 ? row[lane] : static_cast<uint32_t>(row[lane]) >> (i * bits_of(type)));
  }
}

// Calls body(lane, row, column, register, half) for every element of C and D.
template <class F> void each_result(Type type, uint32_t registers, F&& body) {
  bool is_half = type == Type::F16;
  for (uint32_t r = 0; r < registers; ++r)
    for (int lane = 0; lane < 32; ++lane)
      for (int half = 0; half < (is_half ? 2 : 1); ++half) {
        int column = lane % 4 * 2 + (is_half ? half : static_cast<int>(r & 1));
        body(lane, lane / 4 + 8 * static_cast<int>(is_half ? r : r >> 1), column, r, half);
      }
}

double addend(Type type, uint64_t bits, int half) {
  switch (type) {
  case Type::F16: return widen(static_cast<uint32_t>(bits >> (16 * half)) & 0xffff, kF16);
  case Type::F32: return Bits<float>::from(bits);
  case Type::S32: return static_cast<int32_t>(bits);
  default: return Bits<double>::from(bits);
  }
}

uint32_t wrapped(double sum, bool saturate) {
  auto exact = static_cast<int64_t>(sum);
  if (saturate) exact = std::clamp<int64_t>(exact, INT32_MIN, INT32_MAX);
  return static_cast<uint32_t>(exact);
}

void store_result(uint64_t& word, Type type, int half, double sum, bool saturate) {
  switch (type) {
  case Type::F16:
    word = (word & ~(uint64_t{0xffff} << (16 * half))) | (uint64_t{narrow(sum, kF16)} << (16 * half));
    break;
  case Type::F32: word = Bits<float>::to(static_cast<float>(sum)); break;
  case Type::S32: word = wrapped(sum, saturate); break;
  default: word = Bits<double>::to(sum);
  }
}

void multiply(Warp& warp, const Op& op, uint32_t mask) {
  if (!is_whole_warp(warp, op, mask)) return;
  MatrixOperands operands(&warp.kernel_lists()[op.list]);
  const MatrixShape& shape = operands.shape;
  double a[16 * 32], b[8 * 32], c[16 * 8];
  gather_factor(warp, shape.a, operands.a, shape.m, shape.k, a);
  gather_factor(warp, shape.b, operands.b, shape.n, shape.k, b);
  each_result(shape.c, operands.c.count, [&](int lane, int row, int column, uint32_t r, int half) {
    c[row * 8 + column] = addend(shape.c, warp.row(operands.c.first[r])[lane], half);
  });
  for (int row = 0; row < shape.m; ++row)
    for (int column = 0; column < shape.n; ++column) {
      double sum = 0;
      for (int i = 0; i < shape.k; ++i) sum += a[row * shape.k + i] * b[column * shape.k + i];
      c[row * 8 + column] += sum;
    }
  each_result(shape.d, operands.d.count, [&](int lane, int row, int column, uint32_t r, int half) {
    store_result(warp.row(operands.d.first[r])[lane], shape.d, half, c[row * 8 + column], op.saturate);
  });
}

// Lane 8 i + r gives the address of row r of matrix i; its 16 bytes count as read or written by that lane.
bool matrix_rows(Warp& warp, const Op& op, Use use, uint8_t* (&rows)[32]) {
  uint64_t addresses[32];
  for (int lane = 0; lane < 8 * op.count; ++lane) {
    Space space = Space::Shared;
    addresses[lane] = warp.row(op.a)[lane] + static_cast<uint64_t>(op.value);
    if (op.is_short)
      addresses[lane] = static_cast<uint32_t>(addresses[lane]);
    else
      space = op.space;
    rows[lane] = access(warp, op, lane, space, addresses[lane], 16, use);
    if (!rows[lane]) return false;
  }
  uint32_t mask = op.count == 4 ? ~0u : (1u << (8 * op.count)) - 1;
  count_traffic(warp, op, Space::Shared, addresses, mask, 16, use == Use::Write);
  return true;
}

void load_matrix(Warp& warp, const Op& op, uint32_t mask) {
  uint8_t* rows[32];
  if (!is_whole_warp(warp, op, mask) || !matrix_rows(warp, op, Use::Read, rows)) return;
  const uint32_t* list = &warp.kernel_lists()[op.list];
  for (int i = 0; i < op.count; ++i)
    for (int lane = 0; lane < 32; ++lane) {
      uint16_t pair[2];
      for (int half = 0; half < 2; ++half) {
        int row = lane / 4, column = lane % 4 * 2 + half;
        if (op.form == 1) std::swap(row, column);
        std::memcpy(&pair[half], rows[8 * i + row] + 2 * column, 2);
      }
      warp.row(list[i])[lane] = pair[0] | uint32_t{pair[1]} << 16;
    }
}

void store_matrix(Warp& warp, const Op& op, uint32_t mask) {
  uint8_t* rows[32];
  if (!is_whole_warp(warp, op, mask) || !matrix_rows(warp, op, Use::Write, rows)) return;
  const uint32_t* list = &warp.kernel_lists()[op.list];
  for (int i = 0; i < op.count; ++i)
    for (int lane = 0; lane < 32; ++lane)
      for (int half = 0; half < 2; ++half) {
        int row = lane / 4, column = lane % 4 * 2 + half;
        if (op.form == 1) std::swap(row, column);
        auto element = static_cast<uint16_t>(warp.row(list[i])[lane] >> (16 * half));
        std::memcpy(rows[8 * i + row] + 2 * column, &element, 2);
      }
}

} // namespace

Execute matrix_op() {
  return multiply;
}
Execute load_matrix_op() {
  return load_matrix;
}
Execute store_matrix_op() {
  return store_matrix;
}

} // namespace firn::ptx
