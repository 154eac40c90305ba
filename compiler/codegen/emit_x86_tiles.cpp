// Matrix registers: AMX. Tile numbers are parts of the instructions, so that nothing is left to allocate.
// LLVM does not know which memory the intrinsics touch, so code stays in order around them.
#include "compiler/codegen/emit_x86_tiles.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsX86.h>

namespace firn::codegen {

using namespace kernel;

namespace {

// The configuration that ldtilecfg reads: the palette, bytes of a row as 16-bit numbers from byte 16 on, rows
// from byte 48 on.
constexpr size_t kConfigurationBytes = 64, kRowBytesAt = 16, kRowsAt = 48;

std::string configuration_of(const std::vector<MatrixTile>& tiles) {
  std::string bytes(kConfigurationBytes, '\0');
  bytes[0] = 1;
  for (size_t i = 0; i < tiles.size(); ++i) {
    bytes[kRowBytesAt + 2 * i] = static_cast<char>(tiles[i].row_bytes);
    bytes[kRowsAt + i] = static_cast<char>(tiles[i].rows);
  }
  return bytes;
}

llvm::Intrinsic::ID intrinsic_of(OpKind kind) {
  switch (kind) {
  case OpKind::TileDotU8S8: return llvm::Intrinsic::x86_tdpbusd;
  case OpKind::TileDotS8U8: return llvm::Intrinsic::x86_tdpbsud;
  case OpKind::TileDotS8S8: return llvm::Intrinsic::x86_tdpbssd;
  case OpKind::TileDotU8U8: return llvm::Intrinsic::x86_tdpbuud;
  case OpKind::TileDotBF16: return llvm::Intrinsic::x86_tdpbf16ps;
  default: FIRN_UNREACHABLE("op is no product of tiles");
  }
}

} // namespace

// Kernels whose tiles have the same shapes share the configuration.
void configure_x86_tiles(llvm::Module& module, llvm::IRBuilder<>& ir, const std::vector<MatrixTile>& tiles) {
  std::string name = "firn.tiles";
  for (const MatrixTile& tile : tiles)
    name += "." + std::to_string(tile.rows) + "x" + std::to_string(tile.row_bytes);
  llvm::GlobalVariable* memory = module.getNamedGlobal(name);
  if (!memory) {
    llvm::Constant* bytes = llvm::ConstantDataArray::getString(module.getContext(), configuration_of(tiles),
                                                               /*AddNull=*/false);
    memory = new llvm::GlobalVariable(module, bytes->getType(), /*isConstant=*/true,
                                      llvm::GlobalValue::PrivateLinkage, bytes, name);
    memory->setAlignment(llvm::Align(kConfigurationBytes));
  }
  ir.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {memory});
}

void release_x86_tiles(llvm::IRBuilder<>& ir) {
  ir.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
}

void emit_x86_tile(llvm::IRBuilder<>& ir, const Op& op, llvm::Value* pointer, int64_t element_bytes) {
  auto tile = [&](size_t i) { return ir.getInt8(static_cast<uint8_t>(op.integers[i])); };
  if (op.kind == OpKind::TileZero) {
    ir.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {}, {tile(0)});
  } else if (pointer) {
    bool loads = op.kind == OpKind::TileLoad;
    ir.CreateIntrinsic(
        loads ? llvm::Intrinsic::x86_tileloadd64 : llvm::Intrinsic::x86_tilestored64, {},
        {tile(0), pointer, ir.getInt64(static_cast<uint64_t>(op.integers[1] * element_bytes))});
  } else {
    ir.CreateIntrinsic(intrinsic_of(op.kind), {}, {tile(0), tile(1), tile(2)});
  }
}

} // namespace firn::codegen
