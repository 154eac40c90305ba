// The state is an archive of arrays: parameters/NAME, states/NAME, position and epoch_loss.
#include "compiler/driver/train/saved_training.h"

#include "compiler/driver/calibration_data.h"
#include "compiler/quantize/replace_constants.h"
#include "compiler/support/temporary_folder.h"

#include <cstring>

namespace firn::driver {
namespace {

constexpr char kParameters[] = "parameters/", kStates[] = "states/", kPosition[] = "position",
               kEpochLoss[] = "epoch_loss";

LiteralRef literal_of(const Trainer::Slot& slot) {
  auto literal = std::make_shared<Literal>(slot.tensor->dtype, slot.tensor->dims_at_bound());
  std::memcpy(literal->mutable_bytes().data(), slot.memory, literal->bytes().size());
  return literal;
}

NamedTensors tensors_of(const std::vector<Trainer::Slot>& slots, const std::string& prefix = "") {
  NamedTensors tensors;
  for (const Trainer::Slot& slot : slots) tensors[prefix + slot.tensor->name] = literal_of(slot);
  return tensors;
}

NamedTensors state_of(const Trainer& trainer, const TrainingPosition& position) {
  NamedTensors tensors = tensors_of(trainer.parameters(), kParameters);
  tensors.merge(tensors_of(trainer.optimizer_states(), kStates));
  tensors[kPosition] = Literal::of_i64(
      {position.epoch, position.step, position.examples, position.batch, position.seed, position.shuffles});
  tensors[kEpochLoss] = Literal::of<double>(DType::F64, {2}, {position.loss_sum, position.loss_weight});
  return tensors;
}

// The model's file with other values for its initializers.
Expected<std::string> model_bytes(const std::string& model_path, const NamedTensors& tensors) {
  auto folder = TemporaryFolder::make();
  if (!folder) return folder.error();
  const std::string path = folder->file("trained.onnx");
  if (Result written = quantize::write_with_constants(model_path, tensors, path); !written)
    return usage_error(written.error().message + "; .npz and .safetensors hold any tensors");
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  return std::string(reinterpret_cast<const char*>((*file)->bytes().data()), (*file)->bytes().size());
}

Expected<std::string> tensor_bytes(const std::string& path, const std::string& model_path,
                                   const NamedTensors& tensors) {
  if (Result known = check_tensor_path(path); !known) return known.error();
  if (path.ends_with(".npz")) return npz_bytes(path, tensors);
  if (path.ends_with(".safetensors")) return safetensors_bytes(path, tensors);
  return model_bytes(model_path, tensors);
}

// The array for each slot; a usage error names the first that is missing or of another type.
Expected<std::vector<LiteralRef>> arrays_for(const std::vector<Trainer::Slot>& slots, const char* prefix,
                                             const std::string& path, const NamedTensors& arrays) {
  std::vector<LiteralRef> found;
  for (const Trainer::Slot& slot : slots) {
    const Type wanted = Type::tensor_of(slot.tensor->dtype, slot.tensor->dims_at_bound());
    auto array = arrays.find(prefix + slot.tensor->name);
    if (array == arrays.end())
      return usage_error("'" + path + "' has no '" + prefix + slot.tensor->name +
                         "': it was saved with other tensors to train, or another optimizer");
    if (array->second->type() != wanted)
      return usage_error("'" + path + "': '" + array->first + "' is " + array->second->type().to_string() +
                         ", this training wants " + wanted.to_string());
    found.push_back(array->second);
  }
  return found;
}

void put(const std::vector<LiteralRef>& values, const std::vector<Trainer::Slot>& slots) {
  for (size_t i = 0; i < slots.size(); ++i)
    std::memcpy(slots[i].memory, values[i]->bytes().data(), values[i]->bytes().size());
}

Expected<TrainingPosition> position_of(const std::string& path, const NamedTensors& arrays) {
  auto position = arrays.find(kPosition), loss = arrays.find(kEpochLoss);
  const bool is_whole = position != arrays.end() && position->second->dtype() == DType::I64 &&
                        position->second->num_elements() == 6 && loss != arrays.end() &&
                        loss->second->dtype() == DType::F64 && loss->second->num_elements() == 2;
  if (!is_whole) return usage_error("'" + path + "' is not the state of a training");
  auto numbers = position->second->data<int64_t>();
  auto sums = loss->second->data<double>();
  return TrainingPosition{numbers[0], numbers[1], numbers[2], numbers[3],
                          numbers[4], numbers[5], sums[0],    sums[1]};
}

} // namespace

std::string state_path(const std::string& path) {
  return path + ".state";
}

Result check_tensor_path(const std::string& path) {
  for (const char* ending : {".npz", ".safetensors", ".onnx"})
    if (path.ends_with(ending)) return {};
  return usage_error("'" + path + "': trained tensors are saved as .npz, .safetensors or .onnx");
}

Result write_training(const std::string& path, const std::string& model_path, const Trainer& trainer,
                      const TrainingPosition& position, OutputSet& outputs) {
  auto tensors = tensor_bytes(path, model_path, tensors_of(trainer.parameters()));
  if (!tensors) return tensors.error();
  auto state = npz_bytes(state_path(path), state_of(trainer, position));
  if (!state) return state.error();
  if (Result written = outputs.write(path, *tensors); !written) return written;
  return outputs.write(state_path(path), *state);
}

Expected<TrainingPosition> read_training(const std::string& path, Trainer& trainer) {
  const std::string file = state_path(path);
  auto arrays = read_npz(file);
  if (!arrays) return arrays.error();
  auto position = position_of(file, *arrays);
  if (!position) return position.error();
  auto parameters = arrays_for(trainer.parameters(), kParameters, file, *arrays);
  if (!parameters) return parameters.error();
  auto states = arrays_for(trainer.optimizer_states(), kStates, file, *arrays);
  if (!states) return states.error();
  put(*parameters, trainer.parameters());
  put(*states, trainer.optimizer_states());
  return position;
}

} // namespace firn::driver
