// Text in, passes, text out: how single passes are run, tested and bisected.
#include "compiler/driver/opt.h"

#include "compiler/graph/text.h"
#include "compiler/graph/verify.h"
#include "compiler/passes/pass.h"
#include "compiler/support/output_set.h"
#include "compiler/target/target_machine.h"

#include <iostream>
#include <iterator>

namespace firn::driver {
namespace {

Expected<std::string> read_text(const std::string& path) {
  if (path == "-") return std::string{std::istreambuf_iterator<char>(std::cin), {}};
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  auto bytes = (*file)->bytes();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Expected<LiteralTable> read_side_file(const std::string& path) {
  if (path.empty()) return LiteralTable{};
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  return read_literals(*file);
}

} // namespace

Expected<std::string> opt(const OptOptions& options) {
  auto text = read_text(options.input);
  if (!text) return text.error();
  auto literals = read_side_file(options.weights);
  if (!literals) return literals.error();
  auto module = parse_module(options.input, *text, *literals);
  if (!module) return module.error();
  if (Result valid = verify(**module); !valid)
    return model_error(options.input + ": " + valid.error().message);
  if (options.verify_only) return print_module(**module);

  PipelineRun run;
  TargetMachine target;
  bool for_target = !options.cpu.empty() || !options.triple.empty();
  if (for_target) {
    auto found = find_target(options.triple, options.cpu, options.features);
    if (!found) return found.error();
    target = *found;
    run.options.target = &target;
  }
  run.options.rewrite_limit = options.rewrite_limit;
  std::string passes = options.passes == "default" ? default_pipeline(for_target) : options.passes;
  if (Result done = run_passes(**module, passes, run); !done) return done.error();
  if (!options.weights_out.empty())
    if (Result written = write_file(options.weights_out, write_literals(**module)); !written)
      return written.error();
  return print_module(**module);
}

} // namespace firn::driver
