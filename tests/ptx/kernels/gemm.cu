// C = A B by tiles of 32 x 32 of f32, both tiles staged twice by asynchronous copies.
#include <cuda_pipeline.h>
extern "C" __global__ void __launch_bounds__(64) gemm(const float* __restrict__ a, const float* __restrict__ b, float* c, int n) {
  __shared__ float as[2][32][16];
  __shared__ float bs[2][16][32];
  int t = threadIdx.x, row = blockIdx.y * 32, col = blockIdx.x * 32;
  float sum[4][4] = {};
  auto stage = [&](int k, int to) {
    for (int i = t; i < 128; i += 64) __pipeline_memcpy_async(&as[to][i / 4][i % 4 * 4], a + (row + i / 4) * n + k + i % 4 * 4, 16);
    for (int i = t; i < 128; i += 64) __pipeline_memcpy_async(&bs[to][i / 8][i % 8 * 4], b + (k + i / 8) * n + col + i % 8 * 4, 16);
    __pipeline_commit();
  };
  stage(0, 0);
  for (int k = 0, at = 0; k < n; k += 16, at ^= 1) {
    if (k + 16 < n) { stage(k + 16, at ^ 1); __pipeline_wait_prior(1); } else { __pipeline_wait_prior(0); }
    __syncthreads();
    #pragma unroll
    for (int kk = 0; kk < 16; ++kk) {
      float x[4], y[4];
      for (int i = 0; i < 4; ++i) x[i] = as[at][t / 8 * 4 + i][kk];
      for (int i = 0; i < 4; ++i) y[i] = bs[at][kk][t % 8 * 4 + i];
      for (int i = 0; i < 4; ++i) for (int j = 0; j < 4; ++j) sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) for (int j = 0; j < 4; ++j) c[(row + t / 8 * 4 + i) * n + col + t % 8 * 4 + j] = sum[i][j];
}
