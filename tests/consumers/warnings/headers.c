/* Every public header that C reads, and an operator of the program. */
#include <firn/abi.h>
#include <firn/cpu_features.h>
#include <firn/custom_op.h>
#include <firn/text.h>
#include <firn/thread_pool.h>

int32_t halve(const firn_custom_call* call);

int32_t halve(const firn_custom_call* call) {
  const firn_custom_tensor x = firn_custom_input(call, 0), y = firn_custom_output(call, 0);
  const firn_custom_tensor by = firn_custom_attribute(call, "by");
  const float factor = by.data ? *(const float*)by.data : 0.5f;
  size_t i;
  for (i = 0; i < firn_custom_element_count(x); ++i) ((float*)y.data)[i] = ((const float*)x.data)[i] * factor;
  return 0;
}
