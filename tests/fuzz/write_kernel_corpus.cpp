// write_kernel_corpus FOLDER: kernel IR text to start fuzzing from.
#include "tests/kernel/sample_kernels.h"

#include <fstream>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ofstream file(std::string(argv[1]) + "/sample.kir", std::ios::binary);
  file << firn::kernel::print_program(firn::kernel::sample_program());
  return file.good() ? 0 : 1;
}
