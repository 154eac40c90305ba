// Softmax of rows of f32, a block of 128 threads per row, by shuffles and one value of shared memory per warp.
__device__ __noinline__ float exponential(float x) { return exp2f(x * 1.44269504f); }
extern "C" __global__ void softmax(const float* in, float* out, int n) {
  __shared__ float largest[4];
  __shared__ float total[4];
  int t = threadIdx.x;
  in += blockIdx.x * n;
  out += blockIdx.x * n;
  float m = -INFINITY;
  for (int i = t; i < n; i += 128) m = fmaxf(m, in[i]);
  for (int d = 16; d; d /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
  if (t % 32 == 0) largest[t / 32] = m;
  __syncthreads();
  m = fmaxf(fmaxf(largest[0], largest[1]), fmaxf(largest[2], largest[3]));
  float s = 0;
  for (int i = t; i < n; i += 128) s += exponential(in[i] - m);
  for (int d = 16; d; d /= 2) s += __shfl_down_sync(~0u, s, d);
  if (t % 32 == 0) total[t / 32] = s;
  __syncthreads();
  s = total[0] + total[1] + total[2] + total[3];
  for (int i = t; i < n; i += 128) out[i] = exponential(in[i] - m) / s;
}
