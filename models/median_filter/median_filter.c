// The operator com.acme:MedianFilter: the median of the samples around each, lines by themselves. It is
// linked with the model, which calls it (firn/custom_op.h).
#include <firn/custom_op.h>

static float clamped(const float* line, ptrdiff_t length, ptrdiff_t at) {
  return line[at < 0 ? 0 : at >= length ? length - 1 : at];
}

static float median(const float* line, ptrdiff_t length, ptrdiff_t at, ptrdiff_t size, float* sorted) {
  for (ptrdiff_t i = 0; i < size; ++i) {
    const float sample = clamped(line, length, at - size / 2 + i);
    ptrdiff_t place = i;
    for (; place > 0 && sorted[place - 1] > sample; --place) sorted[place] = sorted[place - 1];
    sorted[place] = sample;
  }
  return sorted[size / 2];
}

int32_t median_filter(const firn_custom_call* call) {
  const firn_custom_tensor x = firn_custom_input(call, 0), y = firn_custom_output(call, 0);
  const firn_custom_tensor attribute = firn_custom_attribute(call, "size");
  const int64_t size = attribute.data ? *(const int64_t*)attribute.data : 3;
  if (x.rank != 2 || x.dtype != FIRN_DTYPE_F32) return 1;
  if (size < 1 || (size_t)size * sizeof(float) > call->workspace_bytes) return 2;
  const ptrdiff_t length = (ptrdiff_t)x.dims[1];
  for (size_t channel = 0; channel < x.dims[0]; ++channel) {
    const float* from = (const float*)x.data + channel * x.dims[1];
    float* to = (float*)y.data + channel * x.dims[1];
    for (ptrdiff_t i = 0; i < length; ++i)
      to[i] = median(from, length, i, (ptrdiff_t)size, (float*)call->workspace);
  }
  return 0;
}
