// One case of `firn verify`: every data set through the engine, against what is stored.
#include "compiler/driver/case_engine.h"
#include "compiler/driver/import_model.h"
#include "compiler/driver/tensor_error.h"
#include "compiler/driver/verify.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

namespace firn::driver {
namespace {

// Whether the tensors differ by no more than the last decimal that the expected one was stored with.
bool within_stored_digits(const Literal& got, const Literal& want) {
  double unit = stored_unit(want);
  if (unit == 0 || got.dims() != want.dims() || got.dtype() != want.dtype()) return false;
  for (int64_t i = 0; i < want.num_elements(); ++i)
    if (!(std::fabs(got.get_double(i) - want.get_double(i)) <= 1.01 * unit) &&
        !(std::isnan(got.get_double(i)) && std::isnan(want.get_double(i))))
      return false;
  return true;
}

} // namespace

CaseResult verify_case(const VerifyOptions& options, const std::string& folder) {
  CaseResult result;
  result.name = std::filesystem::path(folder).filename().string();
  auto fail = [&](const Diagnostic& error) {
    result.verdict = error.fault == Fault::Unsupported ? Verdict::Refused : Verdict::Wrong;
    result.message = error.message;
    return result;
  };
  std::string model =
      folder + (std::filesystem::exists(folder + "/model.onnx") ? "/model.onnx" : "/model.hlo");
  CompileOptions inspected = options.compile;
  inspected.set_model_path(model);
  auto facts = inspect_model(inspected);
  if (!facts) return fail(facts.error());
  auto sets = read_data_sets(folder, *facts);
  if (!sets) return fail(sets.error());
  if (sets->empty()) return fail(model_error("no test_data_set_* with tensors"));
  CaseEngine engine(options.engine, options.compile, model, *facts);
  result.verdict = Verdict::Pass;
  for (const DataSet& set : *sets) {
    auto got = engine.run(set);
    if (!got) return fail(got.error());
    std::vector<LiteralRef> expected = onnx::as_results(set.outputs, engine.result_names(), *got);
    if (got->size() != expected.size())
      return fail(model_error(set.name + ": got " + std::to_string(got->size()) + " outputs, expected " +
                              std::to_string(expected.size())));
    for (size_t i = 0; i < got->size(); ++i) {
      std::string why;
      const Literal& want = *expected[i];
      double error = tensor_error(*(*got)[i], want, why);
      if (options.absolute_floor && std::isfinite(error)) {
        double scale = 0;
        for (int64_t e = 0; e < want.num_elements(); ++e)
          if (std::isfinite(want.get_double(e))) scale = std::max(scale, std::fabs(want.get_double(e)));
        error = scale > 0 && scale < 1 ? error * scale : error;
      }
      result.error = std::max(result.error, error);
      double tolerance = options.tolerance.value_or(default_tolerance(want.dtype()));
      if (error <= tolerance || (!options.tolerance && within_stored_digits(*(*got)[i], want))) continue;
      if (same_distribution(*(*got)[i], want) && engine.is_drawn(i)) {
        result.is_random = true;
        continue;
      }
      result.verdict = Verdict::Wrong;
      char number[32];
      std::snprintf(number, sizeof number, "%.3g", error);
      result.message = set.name + " output " + std::to_string(i) + ": error " + number + ": " + why;
      return result;
    }
  }
  if (result.is_random) result.error = 0;
  for (const std::string& name : engine.fixed())
    result.message += (result.message.empty() ? "fixed: " : ", ") + name;
  return result;
}

} // namespace firn::driver
