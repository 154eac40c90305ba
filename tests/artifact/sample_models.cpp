// The sample models; see sample_models.h.
#include "tests/artifact/sample_models.h"

#include "compiler/artifact/identifiers.h"
#include "include/firn/abi.h"

namespace firn::artifact {
namespace {

TensorDescription tensor(std::string name, DType dtype, std::vector<IntExpr> dims,
                         std::optional<int64_t> arena_offset) {
  TensorDescription result;
  result.name = std::move(name);
  result.dtype = dtype;
  result.dims = std::move(dims);
  result.arena_offset = arena_offset;
  return result;
}

void name_all(ModelDescription& model) {
  const Result named = assign_identifiers(model);
  FIRN_CHECK(named, "sample models have usable names");
}

} // namespace

ModelDescription digits_sample() {
  ModelDescription model;
  model.model_name = "digits";
  model.source_file = "/somewhere/else/digits.onnx";
  model.source_sha256 = "3f1c000000000000000000000000000000000000000000000000000000000abc";
  model.class_name = "vision::Digits";
  model.inputs = {tensor("image", DType::F32, {1, 1, 28, 28}, 0)};
  model.outputs = {tensor("probabilities", DType::F32, {1, 10}, 3136)};
  model.arena_bytes = 24576;
  model.arena_lower_bound = 24576;
  model.weight_bytes = 256;
  model.code_bytes = 9800;
  model.object_bytes = 263100;
  model.stack_bytes = 448;
  model.parameters = 62801;
  model.flops = 4700000;
  model.node_count = 12;
  model.firn_version = "0.1.0";
  model.triple = "x86_64-unknown-linux-gnu";
  model.cpu = "x86-64-v3";
#if defined(__x86_64__)
  model.architecture = FIRN_ARCH_X86_64;
  model.required_features = 0x8;
#endif
  model.flags = {"-O3"};
  model.kernels = {{"conv1", 1, 4000000, 12000, 4000}, {"fc", 2, 700000, 250000, 2000}};
  model.weights = {{"conv1.weight", 1600}, {"fc.weight", 240000}};
  model.peak = {15680, 1, 3, "/conv1/Conv", {{{"image", 3136}, ""}, {{"conv1.output", 12544}, "/fc/Gemm"}}};
  name_all(model);
  return model;
}

ModelDescription everything_sample() {
  ModelDescription model;
  model.model_name = "every\"thing\n";
  model.source_file = "every*/thing\\\n.onnx";
  model.source_sha256 = std::string(64, '0');
  model.class_name = "Everything";
  int64_t offset = 0;
  const DType dtypes[] = {DType::F64,        DType::F32,    DType::F16,        DType::BF16,   DType::F8E4M3FN,
                          DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ, DType::F8E8M0, DType::F4E2M1,
                          DType::I64,        DType::I32,    DType::I16,        DType::I8,     DType::I4,
                          DType::I2,         DType::U64,    DType::U32,        DType::U16,    DType::U8,
                          DType::U4,         DType::U2,     DType::Bool,       DType::C64,    DType::C128};
  for (DType dtype : dtypes) {
    model.inputs.push_back(tensor("in:" + std::string(dtype_name(dtype)), dtype, {2, 3}, offset));
    offset += 128;
    model.outputs.push_back(tensor("out:" + std::string(dtype_name(dtype)), dtype, {2, 3}, offset));
    offset += 128;
  }
  model.inputs.push_back(tensor("class", DType::F32, {}, offset));
  model.inputs.push_back(tensor("run", DType::I64, {}, offset + 64));
  model.inputs.push_back(tensor("external/\"in\"\xc3\xa9\n?\?/", DType::F32, {4}, std::nullopt));
  model.outputs.push_back(tensor("external out", DType::F32, {4}, std::nullopt));
  model.outputs.push_back(tensor("boxes", DType::F32, {100, 4}, offset + 128));
  model.outputs.back().counted_dims = {{0, offset + 1728}};
  model.outputs.push_back(tensor("495", DType::F32, {0, 3}, offset + 1792));
  model.states.push_back(tensor("memory", DType::F32, {8}, offset + 1856));
  model.states.push_back(tensor("past", DType::F32, {4}, offset + 1920));
  model.states.back().initial_weights = 64;
  model.arena_bytes = offset + 1984;
  model.arena_lower_bound = model.arena_bytes;
  model.weight_bytes = 128;
  model.firn_version = "0.1.0";
  model.cpu = "generic";
  name_all(model);
  return model;
}

ModelDescription bare_sample() {
  ModelDescription model;
  model.model_name = "bare";
  model.source_file = "bare.onnx";
  model.source_sha256 = std::string(64, '1');
  model.class_name = "a::b::BareModel";
  model.outputs = {tensor("Y", DType::F32, {2}, std::nullopt)};
  model.firn_version = "0.1.0";
  model.cpu = "generic";
  name_all(model);
  return model;
}

ModelDescription prepared_sample() {
  ModelDescription model = digits_sample();
  model.class_name = "vision::Prepared";
  model.raw_weight_bytes = 128;
  return model;
}

ModelDescription in_place_sample() {
  ModelDescription model = digits_sample();
  model.class_name = "vision::InPlace";
  model.raw_weight_bytes = model.weight_bytes;
  model.raw_in_place = true;
  return model;
}

ModelDescription varying_sample() {
  ModelDescription model;
  model.model_name = "varying";
  model.source_file = "varying.onnx";
  model.source_sha256 = std::string(64, '2');
  model.class_name = "nlp::Varying";
  const auto add_dim = [&](const char* name, const char* symbol, int64_t lower, int64_t upper,
                           int64_t multiple = 1, std::vector<int64_t> allowed = {}) {
    model.dims.push_back(
        {std::make_shared<Symbol>(Symbol{symbol, lower, upper}), name, "", multiple, allowed});
    return IntExpr::symbol(model.dims.back().symbol);
  };
  const IntExpr batch = add_dim("batch", "batch", 1, 8), seq = add_dim("seq", "seq", 0, 64),
                height = add_dim("image height", "image_height", 32, 96, 32),
                choice = add_dim("class", "class", 1, 8, 1, {1, 4, 8});
  model.inputs = {tensor("input_ids", DType::I64, {batch, seq}, 0),
                  tensor("image", DType::F32, {height, 3}, 4096),
                  tensor("set_batch", DType::F32, {choice}, std::nullopt)};
  model.outputs = {tensor("longer", DType::I64, {batch, seq + 1}, 8192),
                   tensor("tiles", DType::F32, {floor_div(height, 8), floor_div(seq - 1, 2) + 1}, 16384),
                   tensor("boxes", DType::F32, {100, 1, choice}, 20480),
                   tensor("nibbles", DType::I4, {batch, min(seq, 9)}, std::nullopt)};
  model.outputs[2].counted_dims = {{0, 24576}};
  model.states = {tensor("runs", DType::F32, {1}, 24640)};
  model.arena_bytes = model.arena_lower_bound = 24704;
  model.firn_version = "0.1.0";
  model.cpu = "generic";
  name_all(model);
  return model;
}

ModelDescription trained_sample(bool prepared) {
  ModelDescription model = bare_sample();
  model.class_name = prepared ? "nlp::TrainedPrepared" : "nlp::Trained";
  model.entries.clear();
  if (prepared) model.raw_weight_bytes = 512;
  model.weight_bytes = 256;
  const auto add_dim = [](ModelDescription& to, const char* name, int64_t upper, int64_t multiple) {
    to.dims.push_back({std::make_shared<Symbol>(Symbol{name, 2, upper}), name, "", multiple, {}});
    return IntExpr::symbol(to.dims.back().symbol);
  };
  const auto state = [](TensorDescription tensor, bool is_parameter, std::optional<int64_t> initial) {
    tensor.is_parameter = is_parameter;
    tensor.initial_weights = initial;
    return tensor;
  };
  const std::vector<TensorDescription> parameters = {
      state(tensor("fc \"weight\\", DType::F32, {3, 2}, 64), true, 0),
      state(tensor("save", DType::BF16, {5}, 0), true, 128),
      state(tensor("Trainer", DType::F64, {}, 128), true, std::nullopt)};
  const IntExpr rows = add_dim(model, "rows", 8, 2);
  model.inputs = {tensor("x", DType::F32, {rows, 3}, 0)};
  model.outputs = {tensor("y", DType::F32, {rows, 2}, 128)};
  model.states = parameters;
  model.parameter_bytes = 192;
  model.arena_bytes = 192;
  name_all(model);
  for (const bool is_step : {false, true}) {
    ModelDescription entry = model;
    entry.entries.clear();
    entry.dims.clear();
    entry.entry = is_step ? "step" : "evaluate";
    entry.class_name += is_step ? "Step" : "Evaluate";
    entry.updates_parameters = is_step;
    entry.arena_bytes = 1024;
    entry.flops = is_step ? 300 : 100;
    const IntExpr columns = is_step ? add_dim(entry, "columns", 9, 1) : 1,
                  same = add_dim(entry, "rows", 8, 2);
    entry.inputs = {tensor("x", DType::F32, {same, 3}, 128),
                    tensor("labels", DType::I64, {same}, std::nullopt)};
    entry.outputs = {tensor("loss", DType::F32, {}, 64)};
    if (is_step) {
      entry.inputs.push_back(tensor("step", DType::F32, {}, 320));
      entry.outputs.push_back(tensor("gradient fc", DType::F32, {columns, 2}, 384));
      entry.states.push_back(state(tensor("save.mean", DType::BF16, {5}, 0), false, std::nullopt));
      entry.states.push_back(state(tensor("step_count", DType::I64, {}, 16), false, std::nullopt));
      entry.tape_bytes = 96;
    }
    name_all(entry);
    model.entries.push_back(std::move(entry));
  }
  return model;
}

ModelDescription demanding_sample() {
  ModelDescription model = bare_sample();
  model.class_name = "Demanding";
#if defined(__x86_64__)
  model.architecture = FIRN_ARCH_X86_64;
#else
  model.architecture = FIRN_ARCH_AARCH64;
#endif
  model.required_features = uint64_t{1} << 63;
  return model;
}

} // namespace firn::artifact
