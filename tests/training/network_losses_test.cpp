// Training steps of two networks against PyTorch: 100 losses from equal weights (network_losses.txt). Those
// of the evaluator in f64 are PyTorch's in f64. Those of objects in f32 lie at most twice as far from them as
// PyTorch's own in f32 do in one of five orders of sums.
#include "compiler/driver/object_runner.h"
#include "compiler/driver/training_words.h"
#include "tests/training/training_case.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

namespace firn::test {
namespace {

constexpr int64_t kRows = 5, kBatches = 8, kSteps = 100, kClasses = 10;

// One case: the words of --train, which numbers are drawn, PyTorch's losses in f64, and the largest distance
// of those in f32 to them, over five orders of sums.
struct Reference {
  std::string network, words;
  double rate = 0, distance = 0;
  int64_t draw = 0;
  std::vector<double> losses;
};

std::vector<Reference> read_references() {
  std::ifstream file(FIRN_TRAINING_DIR "/network_losses.txt");
  std::vector<Reference> references;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    if (!line.starts_with("network=")) {
      for (double number = 0; words >> number;) references.back().losses.push_back(number);
      continue;
    }
    Reference& reference = references.emplace_back();
    for (std::string word; words >> word;) {
      std::string value = word.substr(word.find('=') + 1);
      if (word.starts_with("network=")) reference.network = value;
      if (word.starts_with("train=")) reference.words = value;
      if (word.starts_with("rate=")) reference.rate = std::stod(value);
      if (word.starts_with("draw=")) reference.draw = std::stoll(value);
      if (word.starts_with("orders=")) reference.distance = std::stod(value);
    }
  }
  return references;
}

// Numbers of make_network_losses.py.
uint32_t mix(uint32_t x) {
  x = (x ^ x >> 16) * 0x7FEB352D;
  x = (x ^ x >> 15) * 0x846CA68B;
  return x ^ x >> 16;
}

double number_at(int64_t i, int64_t stream) {
  return (mix(static_cast<uint32_t>(i + (stream << 20))) >> 8) / 8388608.0 - 1;
}

// Networks whose trained tensors are broadcast zeros, at first, by the tensors' names.
constexpr const char* kMlp = R"(module @mlp {
  func @main(%x: f32[5,784]) -> (f32[5,10]) inputs ["x"] outputs ["y"] {
    %zero = constant [0] : f32[]
    %w1 = broadcast_in_dim %zero {dims = []} : f32[784,256] loc("fc1.weight")
    %w2 = broadcast_in_dim %zero {dims = []} : f32[256] loc("fc1.bias")
    %w3 = broadcast_in_dim %zero {dims = []} : f32[256,10] loc("fc2.weight")
    %w4 = broadcast_in_dim %zero {dims = []} : f32[10] loc("fc2.bias")
    %1 = dot %x, %w1 {lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : f32[5,256]
    %2 = broadcast_in_dim %w2 {dims = [1]} : f32[5,256]
    %3 = add %1, %2 : f32[5,256]
    %4 = broadcast_in_dim %zero {dims = []} : f32[5,256]
    %5 = maximum %3, %4 : f32[5,256]
    %6 = dot %5, %w3 {lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : f32[5,10]
    %7 = broadcast_in_dim %w4 {dims = [1]} : f32[5,10]
    %8 = add %6, %7 : f32[5,10]
    return %8
  }
})";

constexpr const char* kDigits = R"(module @digits {
  func @main(%x: f32[5,1,28,28]) -> (f32[5,10]) inputs ["x"] outputs ["y"] {
    %zero = constant [0] : f32[]
    %low = constant [-inf] : f32[]
    %w1 = broadcast_in_dim %zero {dims = []} : f32[8,1,3,3] loc("conv1.weight")
    %w2 = broadcast_in_dim %zero {dims = []} : f32[8] loc("conv1.bias")
    %w3 = broadcast_in_dim %zero {dims = []} : f32[16,8,3,3] loc("conv2.weight")
    %w4 = broadcast_in_dim %zero {dims = []} : f32[16] loc("conv2.bias")
    %w5 = broadcast_in_dim %zero {dims = []} : f32[784,10] loc("fc.weight")
    %w6 = broadcast_in_dim %zero {dims = []} : f32[10] loc("fc.bias")
    %1 = convolution %x, %w1 {groups = 1, window = 3x3 pad 1_1x1_1} : f32[5,8,28,28]
    %2 = broadcast_in_dim %w2 {dims = [1]} : f32[5,8,28,28]
    %3 = add %1, %2 : f32[5,8,28,28]
    %4 = broadcast_in_dim %zero {dims = []} : f32[5,8,28,28]
    %5 = maximum %3, %4 : f32[5,8,28,28]
    %6 = reduce_window %5, %low {window = 1x1x2x2 stride 1x1x2x2} region(%a: f32[], %b: f32[]) {
      %c = maximum %a, %b : f32[]
      return %c
    } : f32[5,8,14,14]
    %7 = convolution %6, %w3 {groups = 1, window = 3x3 pad 1_1x1_1} : f32[5,16,14,14]
    %8 = broadcast_in_dim %w4 {dims = [1]} : f32[5,16,14,14]
    %9 = add %7, %8 : f32[5,16,14,14]
    %10 = broadcast_in_dim %zero {dims = []} : f32[5,16,14,14]
    %11 = maximum %9, %10 : f32[5,16,14,14]
    %12 = reduce_window %11, %low {window = 1x1x2x2 stride 1x1x2x2} region(%d: f32[], %e: f32[]) {
      %f = maximum %d, %e : f32[]
      return %f
    } : f32[5,16,7,7]
    %13 = reshape %12 : f32[5,784]
    %14 = dot %13, %w5 {lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : f32[5,10]
    %15 = broadcast_in_dim %w6 {dims = [1]} : f32[5,10]
    %16 = add %14, %15 : f32[5,10]
    return %16
  }
})";

LiteralRef numbers(const Type& type, int64_t stream, double bound) {
  auto literal = std::make_shared<Literal>(type.dtype, type.static_dims());
  for (int64_t i = 0; i < literal->num_elements(); ++i) literal->set_double(i, number_at(i, stream) * bound);
  return literal;
}

std::string with_dtype(std::string text, const std::string& dtype) {
  for (size_t at = 0; (at = text.find("f32", at)) != std::string::npos; at += dtype.size())
    text.replace(at, 3, dtype);
  return text;
}

std::unique_ptr<Module> network_of(const Reference& reference, const std::string& dtype) {
  static const std::map<std::string, double> kBounds{
      {"fc2.weight", 0.125}, {"conv1.weight", 0.5}, {"conv2.weight", 0.25}}; // others: a sixteenth
  auto module = parsed(with_dtype(reference.network == "mlp" ? kMlp : kDigits, dtype));
  std::vector<Instruction*> tensors;
  for (const auto& instruction : module->main().body().instructions())
    if (instruction->location().ends_with("weight") || instruction->location().ends_with("bias"))
      tensors.push_back(instruction.get());
  for (size_t i = 0; i < tensors.size(); ++i) {
    GraphBuilder builder(module->main().body(), tensors[i]);
    builder.set_location(tensors[i]->location());
    auto bound = kBounds.find(tensors[i]->location());
    const Type& type = tensors[i]->result().type();
    LiteralRef drawn = numbers(type, 128 * reference.draw + static_cast<int64_t>(i) + 1,
                               bound == kBounds.end() ? 1. / 16 : bound->second);
    module->main().body().replace_uses(tensors[i]->result(), builder.constant(drawn));
  }
  return module;
}

LiteralRef labels_of(const Type& type, int64_t draw, int64_t batch) {
  auto literal = std::make_shared<Literal>(type.dtype, type.static_dims());
  for (int64_t i = 0; i < kRows; ++i)
    literal->set_int(i, mix(static_cast<uint32_t>(i + batch * kRows + ((128 * draw + 99) << 20))) % kClasses);
  return literal;
}

Type type_of(const Function& step, const std::string& name) {
  const auto& names = step.parameter_names;
  const auto found = std::find(names.begin(), names.end(), name);
  REQUIRE(found != names.end());
  return step.body().parameters()[static_cast<size_t>(found - names.begin())]->type();
}

// The arguments of a step. Learning rates are powers of two.
StepInputs inputs_of(const Function& step, const Reference& reference, int64_t number) {
  const int64_t batch = number % kBatches;
  return {numbers(type_of(step, "x"), 128 * reference.draw + 100 + batch, 1),
          labels_of(type_of(step, "labels"), reference.draw, batch), reference.rate};
}

// The largest distance of an object's 100 losses to PyTorch's in f64.
double distance_of(const Reference& reference, const std::string& cpu) {
  auto module = network_of(reference, "f32");
  auto made = training::make_training_step(*module, options_of(reference.words, {}));
  if (!made) FAIL(made.error().message);
  const Function& step = *module->find("step");
  auto compilation = compiled(*module, "step", cpu);
  auto runner = driver::ObjectRunner::create(*compilation);
  if (!runner) FAIL(runner.error().message);
  double worst = 0;
  for (int64_t number = 0; number < kSteps; ++number) {
    const StepInputs inputs = inputs_of(step, reference, number);
    auto results = (*runner)->run(arguments_of(step, made->initial_states, inputs, number == 0));
    if (!results) FAIL(results.error().message);
    const double loss = (*results)[0]->get_double(0), wanted = reference.losses[static_cast<size_t>(number)];
    REQUIRE(std::isfinite(loss));
    worst = std::max(worst, std::fabs(loss - wanted));
  }
  return worst;
}

void check_distances(const std::string& cpu) {
  std::vector<Reference> references = read_references();
  REQUIRE(references.size() == 14);
  for (const Reference& reference : references) {
    REQUIRE(reference.losses.size() == kSteps);
    const double distance = distance_of(reference, cpu);
    INFO(reference.network << " " << reference.words << ": " << distance << ", PyTorch "
                           << reference.distance);
    CHECK(distance <= 2 * reference.distance);
  }
}

TEST_CASE("losses of networks in f64 are PyTorch's") {
  for (const Reference& reference : read_references()) {
    INFO(reference.network << " " << reference.words);
    Trainer trainer(network_of(reference, "f64"), options_of(reference.words, {}));
    double worst = 0;
    for (int64_t number = 0; number < kSteps; ++number) {
      const StepInputs inputs = inputs_of(trainer.function("step"), reference, number);
      const double loss = trainer.run("step", inputs.x, inputs.target, inputs.rate);
      worst = std::max(worst, std::fabs(loss - reference.losses[static_cast<size_t>(number)]));
    }
    CHECK(worst < 1e-10);
  }
}

TEST_CASE("losses in f32 are as near to those in f64 as PyTorch's", "[objects]") {
  check_distances("");
}

TEST_CASE("losses in f32 are as near on the host's CPU", "[objects]") {
  check_distances("native");
}

} // namespace
} // namespace firn::test
