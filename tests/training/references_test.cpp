// Losses and optimizers against PyTorch in f64: the first 100 losses of references.txt, from equal weights.
#include "tests/training/training_case.h"

#include <cmath>
#include <fstream>
#include <sstream>

namespace firn::test {
namespace {

// One case: the words of --train, and the losses of PyTorch.
struct Reference {
  std::string words;
  double rate = 0;
  std::string dims = "5,4"; // the output's
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

TEST_CASE("100 losses are PyTorch's") {
  std::vector<Reference> references = read_references();
  REQUIRE(references.size() > 20);
  for (const Reference& reference : references) {
    INFO(reference.words << " of " << reference.dims);
    REQUIRE(reference.losses.size() == 100);
    auto options = options_of(reference.words, reference.trainable);
    Trainer trainer(parsed(perceptron_text("f64", reference.dims)), options);
    const Function& main = trainer.function("main");
    std::vector<int64_t> dims = main.body().results()[0].type().static_dims();
    const Type target = trainer.function("evaluate").body().parameters()[1]->type();
    double worst = 0;
    for (int64_t step = 0; step < 100; ++step) {
      double loss = trainer.run("step", batch_of(DType::F64, step), target_of(options, target, dims, step),
                                reference.rate);
      worst = std::max(worst, std::fabs(loss - reference.losses[static_cast<size_t>(step)]));
    }
    CHECK(worst < 1e-10);
    CHECK(trainer.states.at("step_count")->get_int(0) == 100);
  }
}

} // namespace
} // namespace firn::test
