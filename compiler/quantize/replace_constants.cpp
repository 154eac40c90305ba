// See replace_constants.h.
#include "compiler/quantize/replace_constants.h"

#include "compiler/quantize/model.h"

namespace firn::quantize {

Result write_with_constants(const std::string& model_path, const std::map<std::string, LiteralRef>& values,
                            const std::string& path) {
  auto model = Model::read(model_path);
  if (!model) return model.error();
  for (const auto& [name, value] : values) {
    const LiteralRef own = model->constant(name);
    if (!own) return usage_error("'" + name + "' is no initializer of '" + model_path + "'");
    if (own->type() != value->type())
      return usage_error("'" + name + "' is " + own->type().to_string() + " in '" + model_path +
                         "', there are values for " + value->type().to_string());
    model->set_constant(name, value);
  }
  return model->write(path);
}

} // namespace firn::quantize
