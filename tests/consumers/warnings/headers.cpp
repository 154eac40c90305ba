// Every public header, the way that an operator of the program is written, and a pool of threads.
#include <firn/abi.h>
#include <firn/cpu_features.h>
#include <firn/custom_op.h>
#include <firn/dtypes.h>
#include <firn/letter_case.h>
#include <firn/model.h>
#include <firn/owned.h>
#include <firn/text.h>
#include <firn/tfcompile.h>
#include <firn/thread_pool.h>
#include <firn/view.h>

extern "C" std::int32_t halve(const firn_custom_call* call);

extern "C" std::int32_t halve(const firn_custom_call* call) {
  const firn_custom_tensor x = firn_custom_input(call, 0), y = firn_custom_output(call, 0);
  const firn_custom_tensor by = firn_custom_attribute(call, "by");
  const float factor = by.data ? *static_cast<const float*>(by.data) : 0.5f;
  for (std::size_t i = 0; i < firn_custom_element_count(x); ++i)
    static_cast<float*>(y.data)[i] = static_cast<const float*>(x.data)[i] * factor;
  return 0;
}

// Whether the pool computes each item once.
bool shares_items();

bool shares_items() {
  int done[3] = {};
  const firn::ThreadPool pool(2);
  const firn_executor executor = pool.executor();
  executor.parallel_for(
      executor.context, 3, [](void* items, std::size_t i) { ++static_cast<int*>(items)[i]; }, done);
  return done[0] == 1 && done[1] == 1 && done[2] == 1 && firn::detail::in_case(U'a', true) == U'A';
}
