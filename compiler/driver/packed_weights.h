// The side file of weights of a program in text form: the bytes that its kernels read, as the object holds
// them. A constant begins at the offset of its buffer in the text, bytes between constants are zeros, and the
// file is as long as the text says that the weights are.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/support/byte_sink.h"
#include "compiler/support/mapped_file.h"

#include <memory>

namespace firn::driver {

// Writes the constants of a program whose weights have offsets.
Result write_packed_weights(const kernel::Program& program, ByteSink& sink);

// Gives the constants of the program the bytes of the file. An error says that the file has another length.
// Null stands for no file: an error if the program has weights.
Result take_packed_weights(kernel::Program& program, const std::shared_ptr<const MappedFile>& file);

} // namespace firn::driver
