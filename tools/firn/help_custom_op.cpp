// `firn help custom-op`: how a program computes an operator of its own. The example is compiled by a test.
#include "tools/firn/command.h"

namespace firn::tool {

std::string custom_op_help() {
  return R"(An operator that Firn lacks can be a function of the program, in C or C++:

  int32_t NAME(const firn_custom_call* call);

It reads inputs and attributes and writes outputs, all in row-major order without gaps, and returns 0; 1 to 255 end
the run with FIRN_STATUS_CUSTOM_OP. Equal inputs are to give equal outputs. firn/custom_op.h has the types.

scale.c, for nodes com.acme:Scale with an attribute 'factor':

  #include <firn/custom_op.h>

  int32_t scale(const firn_custom_call* call) {
    const firn_custom_tensor x = firn_custom_input(call, 0), y = firn_custom_output(call, 0);
    const firn_custom_tensor factor = firn_custom_attribute(call, "factor");
    if (x.dtype != FIRN_DTYPE_F32) return 1;
    size_t count = 1;
    for (int32_t i = 0; i < x.rank; ++i) count *= x.dims[i];
    for (size_t i = 0; i < count; ++i)
      ((float*)y.data)[i] = ((const float*)x.data)[i] * (factor.data ? *(const float*)factor.data : 1);
    return 0;
  }

  firn compile model.onnx --custom-op com.acme:Scale=scale -o model
  firn run model.onnx --custom-op com.acme:Scale=scale --link scale.c --input x=x.npy

DOMAIN:NAME=SYMBOL:64K gives each call 64 KiB of scratch memory, call->workspace. What the model's file does not say of
the outputs' types, --value NAME=f32[1,8] does. In CMake: firn_add_library(... CUSTOM_OP com.acme:Scale=scale), and
target_sources(... scale.c); QUANTIZE wants LINK scale.c too, as it runs the model.
)";
}

} // namespace firn::tool
