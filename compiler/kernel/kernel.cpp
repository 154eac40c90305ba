// Names and sizes of ops and machine types.
#include "compiler/kernel/kernel.h"

#include <algorithm>

namespace firn::kernel {

const OpKindInfo& op_kind_info(OpKind kind) {
  static constexpr OpKindInfo table[] = {
#define FIRN_KERNEL_OP(enumerator, mnemonic, operands, group) {mnemonic, operands, OpGroup::group},
#include "compiler/kernel/kernel_ops.def"
  };
  return table[static_cast<size_t>(kind)];
}

std::string_view scalar_name(Scalar scalar) {
  static constexpr std::string_view names[] = {"i1",  "i8",   "i16", "i32", "i64", "index",
                                               "f16", "bf16", "f32", "f64", "i128"};
  return names[static_cast<size_t>(scalar)];
}

int scalar_bytes(Scalar scalar) {
  static constexpr int bytes[] = {1, 1, 2, 4, 8, 8, 2, 2, 4, 8, 16};
  return bytes[static_cast<size_t>(scalar)];
}

void write_constant(const Constant& constant, std::span<std::byte> out) {
  if (constant.source.bytes.empty())
    std::fill(out.begin(), out.end(), std::byte{0});
  else
    pack(constant.packing, constant.source.bytes, out);
}

IntExpr iterations_of(const Step& call, const Kernel& kernel) {
  return kernel.parallel_count.substitute([&](const Symbol& symbol) -> std::optional<IntExpr> {
    for (size_t i = 0; i < kernel.extents.size(); ++i)
      if (kernel.extents[i].get() == &symbol) return call.extents[i];
    return std::nullopt;
  });
}

void write_weights(const Program& program, std::span<std::byte> weights) {
  for (const Constant& constant : program.constants) {
    const Buffer& memory = program.buffers[static_cast<size_t>(constant.buffer)];
    write_constant(constant,
                   weights.subspan(static_cast<size_t>(memory.offset), static_cast<size_t>(memory.bytes)));
  }
}

bool depend_on_each_other(const Step& a, const Step& b, const Program& program) {
  auto is_written = [&](const Step& call, size_t argument) {
    return program.kernels[static_cast<size_t>(call.kernel)]->parameters[argument].written;
  };
  for (size_t i = 0; i < a.arguments.size(); ++i)
    for (size_t j = 0; j < b.arguments.size(); ++j)
      if (a.arguments[i].buffer == b.arguments[j].buffer && (is_written(a, i) || is_written(b, j)))
        return true;
  return false;
}

int buffer_alignment(const Program& program) {
  int max = 0;
  for (const Buffer& buffer : program.buffers) max = std::max(max, buffer.alignment);
  return max > 0 ? max : 64;
}

size_t blocks_of(OpKind kind) {
  switch (kind) {
  case OpKind::For:
  case OpKind::Threads: return 1;
  case OpKind::While:
  case OpKind::If: return 2;
  default: return 0;
  }
}

std::string MachineType::to_string() const {
  std::string text = (spread ? "spread " : "") + std::string(scalar_name(scalar));
  if (lanes != 1) text += "x" + std::to_string(lanes);
  return text;
}

} // namespace firn::kernel
