// Writes DIR/NAME.h for each sample model, and DIR/NAME_symbols.h with the names of its exported functions
// for the hand-made objects.
#include "compiler/artifact/header.h"
#include "compiler/artifact/interface.h"
#include "compiler/support/output_set.h"
#include "tests/artifact/sample_models.h"

#include <cstdio>

namespace {

bool write_sample(firn::OutputSet& outputs, const std::string& stem,
                  const firn::artifact::ModelDescription& model) {
  const std::string header = firn::artifact::write_header(model);
  const firn::artifact::SymbolNames symbols = firn::artifact::symbol_names(model);
  return outputs.write(stem + ".h", header) &&
         outputs.write(stem + "_symbols.h", "#define RUN_SYMBOL " + symbols.run +
                                                "\n#define WEIGHTS_SYMBOL " + symbols.weights +
                                                "\n#define PREPARE_SYMBOL " + symbols.prepare + "\n");
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  firn::OutputSet outputs;
  const bool written =
      write_sample(outputs, folder + "/digits", firn::artifact::digits_sample()) &&
      write_sample(outputs, folder + "/everything", firn::artifact::everything_sample()) &&
      write_sample(outputs, folder + "/bare", firn::artifact::bare_sample()) &&
      write_sample(outputs, folder + "/prepared", firn::artifact::prepared_sample()) &&
      write_sample(outputs, folder + "/in_place", firn::artifact::in_place_sample()) &&
      write_sample(outputs, folder + "/varying", firn::artifact::varying_sample()) &&
      write_sample(outputs, folder + "/trained", firn::artifact::trained_sample(false)) &&
      write_sample(outputs, folder + "/trained_prepared", firn::artifact::trained_sample(true)) &&
      write_sample(outputs, folder + "/demanding", firn::artifact::demanding_sample()) && outputs.commit();
  if (!written) std::fprintf(stderr, "cannot write sample headers to %s\n", folder.c_str());
  return written ? 0 : 1;
}
