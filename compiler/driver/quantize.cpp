// The quantiser with compiled code as its engine.
#include "compiler/driver/quantize.h"

#include "compiler/driver/calibration_data.h"
#include "compiler/driver/compiled_model.h"
#include "compiler/driver/runs_here.h"
#include "compiler/quantize/quantize.h"
#include "compiler/support/output_set.h"
#include "compiler/support/temporary_folder.h"

namespace firn::driver {
namespace {

std::string replace_extension(const std::string& path, const std::string& extension) {
  return (path.ends_with(".onnx") ? path.substr(0, path.size() - 5) : path) + extension;
}

} // namespace

std::optional<std::string> quantize_model(const QuantizeOptions& options, DiagnosticList& diagnostics) {
  auto failed = [&](const Diagnostic& error) { return diagnostics.add(error), std::nullopt; };
  const std::string& model = options.compile.model;
  auto facts = onnx::inspect_onnx(model);
  if (!facts) return failed(facts.error());
  if (Result runs = check_runs_here(options.compile); !runs) return failed(runs.error());
  auto samples = read_calibration_data(options.data, *facts);
  if (!samples) return failed(samples.error());
  auto folder = TemporaryFolder::make();
  if (!folder) return failed(folder.error());
  quantize::Engine engine = [&](const std::string& path) -> Expected<std::unique_ptr<quantize::Executable>> {
    auto read = onnx::inspect_onnx(path);
    if (!read) return read.error();
    CompileOptions compile = options.compile;
    compile.model = path;
    return compiled_model(std::move(compile), std::move(*read));
  };
  std::string output = options.output.empty() ? replace_extension(model, ".int8.onnx") : options.output;
  auto report =
      quantize::quantize(model, output, folder->path(), *samples, options.quantize, engine, options.progress);
  if (!report) return failed(report.error());
  std::string page = options.report.empty() ? replace_extension(output, ".html") : options.report;
  if (Result written = write_file(page, quantize::report_html(*report)); !written)
    return failed(written.error());
  return quantize::report_text(*report);
}

} // namespace firn::driver
