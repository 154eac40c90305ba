// The text of kernels, for the printer, the parser, and the merging of equal kernels and of their code.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/support/text_scanner.h"

namespace firn::kernel {

// The text of a kernel; `anonymous` leaves out what does not change its code: names, location, algorithm,
// work.
std::string kernel_text(const Kernel& kernel, bool anonymous);

// Reads what follows the word `kernel`. Records an error in the scanner and returns false when it cannot.
bool parse_kernel(TextScanner& scanner, Kernel& kernel);

std::string_view space_name(Space space);

} // namespace firn::kernel
