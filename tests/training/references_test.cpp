// Training steps against PyTorch in f64: 100 losses of steps and 5 of evaluations (references.txt), from
// equal weights.
#include "compiler/driver/training_words.h"
#include "tests/training/training_case.h"

#include <cmath>
#include <fstream>
#include <sstream>

namespace firn::test {
namespace {

constexpr int64_t kSteps = 100, kEvaluations = 5;

// One case: the words of --train, and the losses of PyTorch.
struct Reference {
  std::string words;
  double rate = 0;
  std::string dims = "5,4";   // the output's
  std::string form, adapters; // the network's form, and the words of --lora
  std::vector<std::string> trainable;
  std::vector<double> losses;
};

Reference read_case(const std::string& line) {
  Reference reference;
  std::istringstream words(line);
  words >> reference.words;
  for (std::string word; words >> word;) {
    std::string value = word.substr(word.find('=') + 1);
    if (word.starts_with("rate=")) reference.rate = std::stod(value);
    if (word.starts_with("dims=")) reference.dims = value;
    if (word.starts_with("trainable=")) reference.trainable = {value};
    if (word.starts_with("network=")) reference.form = value;
    if (word.starts_with("lora=")) reference.adapters = value;
  }
  return reference;
}

std::vector<Reference> read_references() {
  std::ifstream file(FIRN_TRAINING_DIR "/references.txt");
  std::vector<Reference> references;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("loss=")) {
      references.push_back(read_case(line));
      continue;
    }
    std::istringstream numbers(line);
    for (double number = 0; numbers >> number;) references.back().losses.push_back(number);
  }
  return references;
}

Trainer trainer_of(const Reference& reference, training::TrainingOptions& options) {
  if (!reference.adapters.empty())
    if (Result read = driver::parse_adapters(reference.adapters, options); !read) FAIL(read.error().message);
  auto module = parsed(perceptron_text("f64", reference.dims));
  if (reference.form == "norm") module = with_norm(std::move(module));
  if (reference.form == "dropout") module = with_dropout(std::move(module), 0.25);
  return Trainer(std::move(module), options);
}

TEST_CASE("100 losses of steps and 5 of evaluations are PyTorch's") {
  std::vector<Reference> references = read_references();
  REQUIRE(references.size() > 35);
  for (const Reference& reference : references) {
    INFO(reference.words << " of " << reference.dims << " " << reference.form << reference.adapters);
    REQUIRE(reference.losses.size() == kSteps + kEvaluations);
    auto options = options_of(reference.words, reference.trainable);
    Trainer trainer = trainer_of(reference, options);
    std::vector<int64_t> dims = trainer.function("main").body().results()[0].type().static_dims();
    const Type target = trainer.function("evaluate").body().parameters()[1]->type();
    double worst = 0;
    for (int64_t number = 0; number < kSteps + kEvaluations; ++number) {
      const int64_t step = number < kSteps ? number : number - kSteps;
      double loss = trainer.run(number < kSteps ? "step" : "evaluate", batch_of(DType::F64, step),
                                target_of(options, target, dims, step), reference.rate);
      worst = std::max(worst, std::fabs(loss - reference.losses[static_cast<size_t>(number)]));
    }
    CHECK(worst < 1e-10);
    CHECK(trainer.states.at("step_count")->get_int(0) == kSteps);
  }
}

} // namespace
} // namespace firn::test
