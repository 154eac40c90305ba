// firn::TfCompiled in the hands of code written for tfcompile: a model runner in the manner of LLVM's
// ReleaseModeModelRunner, which looks tensors up by name, writes through arg_data and reads through
// result_data.
#include "digits.h"
#include "expect.h"

#include <firn/tfcompile.h>

#include <memory>
#include <string>
#include <vector>

template <class Generated> class ModelRunner {
public:
  ModelRunner(const std::vector<std::string>& features, const std::string& decision)
      : model_(std::make_unique<Generated>()) {
    for (const std::string& feature : features) {
      const int index = model_->LookupArgIndex("feed_" + feature);
      buffers_.push_back(index >= 0 ? model_->arg_data(index) : nullptr);
    }
    result_index_ = model_->LookupResultIndex("fetch_" + decision);
  }
  float* feature(std::size_t position) { return static_cast<float*>(buffers_[position]); }
  bool has_decision() const { return result_index_ >= 0; }
  float* evaluate() {
    model_->Run();
    return static_cast<float*>(model_->result_data(result_index_));
  }

private:
  std::unique_ptr<Generated> model_;
  std::vector<void*> buffers_;
  int result_index_ = -1;
};

struct ThreadPoolDevice {};

int main() {
  using Compiled = firn::TfCompiled<vision::Digits>;

  ModelRunner<Compiled> runner({"image", "model_selector"}, "probabilities");
  EXPECT(runner.has_decision());
  EXPECT(runner.feature(1) == nullptr);
  runner.feature(0)[0] = 3.0f;
  for (int i = 1; i < 784; ++i) runner.feature(0)[i] = 0.0f;
  EXPECT(runner.evaluate()[0] == 3.5f);
  EXPECT(runner.evaluate()[0] == 3.5f);

  Compiled model(Compiled::AllocMode::ARGS_VARIABLES_RESULTS_PROFILES_AND_TEMPS);
  ThreadPoolDevice pool;
  model.set_thread_pool(&pool);
  float* image = model.arg0_data();
  for (int i = 0; i < 784; ++i) image[i] = 0.0f;
  model.arg0(0, 0, 1, 0) = 4.0f;
  EXPECT(model.Run());
  EXPECT(model.error_msg().empty());
  EXPECT(model.result0_data()[1] == 5.5f);
  EXPECT(model.result0(0, 1) == 5.5f);
  EXPECT(model.num_args() == 1 && model.num_results() == 1);
  EXPECT(model.arg_size(0) == 3136 && model.result_size(0) == 40);
  EXPECT(model.LookupArgIndex("nothing") == -1);

  float other[784] = {7.0f};
  model.set_arg_data(0, other);
  EXPECT(model.arg_data(0) == other);
  EXPECT(model.Run());
  EXPECT(model.result0(0, 0) == 7.5f);
  return failures;
}
