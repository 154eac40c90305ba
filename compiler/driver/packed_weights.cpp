// See packed_weights.h.
#include "compiler/driver/packed_weights.h"

#include "compiler/kernel/weights_hash.h"

#include <algorithm>
#include <string>
#include <vector>

namespace firn::driver {
namespace {

Result pad(int64_t bytes, ByteSink& sink) {
  constexpr int64_t kChunk = 1 << 16;
  const std::string zeros(static_cast<size_t>(std::clamp<int64_t>(bytes, 0, kChunk)), '\0');
  for (; bytes > 0; bytes -= kChunk)
    if (Result written =
            sink.write(std::string_view(zeros).substr(0, static_cast<size_t>(std::min(bytes, kChunk))));
        !written)
      return written;
  return {};
}

} // namespace

Result write_packed_weights(const kernel::Program& program, ByteSink& sink) {
  int64_t at = 0;
  for (const kernel::Constant* constant : kernel::constants_by_offset(program)) {
    const kernel::Buffer& memory = program.buffers[static_cast<size_t>(constant->buffer)];
    if (Result padded = pad(memory.offset - at, sink); !padded) return padded;
    std::vector<std::byte> bytes(static_cast<size_t>(memory.bytes));
    kernel::write_constant(*constant, bytes);
    if (Result written = sink.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()}); !written)
      return written;
    at = memory.offset + memory.bytes;
  }
  if (at == 0 && program.weight_bytes == 0) return sink.write("");
  return pad(program.weight_bytes - at, sink);
}

Result take_packed_weights(kernel::Program& program, const std::shared_ptr<const MappedFile>& file) {
  const int64_t wanted = program.weight_bytes;
  if (!file) {
    if (program.constants.empty() || wanted == 0) return {};
    return usage_error("the text holds no weights, and its kernels read " + std::to_string(wanted) +
                       " bytes of them: give the file that --weights-out wrote with the text: --weights-in "
                       "FILE");
  }
  if (auto size = static_cast<int64_t>(file->bytes().size()); size != wanted)
    return usage_error("--weights-in " + file->path() + " has " + std::to_string(size) +
                       " bytes, and the text wants " + std::to_string(wanted) + " bytes of weights");
  for (kernel::Constant& constant : program.constants) {
    const kernel::Buffer& memory = program.buffers[static_cast<size_t>(constant.buffer)];
    if (memory.bytes == 0) continue;
    kernel::ConstantSource& source = constant.source;
    source.name = memory.name;
    source.dims = {memory.bytes};
    source.owner = file;
    source.bytes =
        file->bytes().subspan(static_cast<size_t>(memory.offset), static_cast<size_t>(memory.bytes));
    constant.packing = padded_copy(/*element_bytes=*/1, memory.bytes, memory.bytes);
  }
  return {};
}

} // namespace firn::driver
