/* The C interface of the library, as a program in C11 uses it: use_jit MODEL. */
#include <firn/jit.h>
#include <stdio.h>

static int fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  return 1;
}

int main(int argc, char** argv) {
  firn_jit_compiler* compiler = firn_jit_compiler_create(NULL);
  firn_jit_model* model = NULL;
  firn_jit_messages* messages = NULL;
  firn_jit_instance* net;
  firn_jit_request request = {0};
  firn_jit_tensor tensor;
  firn_status status;
  const float* scores;
  double sum = 0;
  size_t i;
  if (argc != 2) return fail("usage: use_jit MODEL");
  request.size = sizeof request;
  request.model = argv[1];
  if (firn_jit_compile(compiler, &request, &model, &messages) != FIRN_JIT_OK)
    return fail(firn_jit_message_text(messages, 0));
  firn_jit_messages_free(messages);
  firn_jit_compiler_free(compiler);
  net = firn_jit_instance_create(model, NULL, 0, &status);
  firn_jit_model_release(model);
  if (!net) return fail(firn_jit_status_message(status));
  if (!firn_jit_instance_tensor(net, FIRN_JIT_INPUT, 0, &tensor)) return fail("there is no input");
  for (i = 0; i < tensor.bytes / sizeof(float); ++i) ((float*)tensor.data)[i] = (float)(i % 7) / 7.0F;
  status = firn_jit_run(net);
  if (status != FIRN_STATUS_OK) return fail(firn_jit_status_message(status));
  if (!firn_jit_instance_tensor(net, FIRN_JIT_OUTPUT, 0, &tensor)) return fail("there is no output");
  scores = (const float*)tensor.data;
  for (i = 0; i < tensor.bytes / sizeof(float); ++i) sum += (double)scores[i];
  firn_jit_instance_free(net);
  printf("%s: probabilities add up to %.4f\n", firn_jit_version(), sum);
  return sum > 0.999 && sum < 1.001 ? 0 : 1;
}
