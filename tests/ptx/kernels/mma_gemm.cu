// C (f32) = A B of f16, a block of one warp per tile of 16 x 8 by ldmatrix and mma.m16n8k16; n divides by 16.
#include <cuda_fp16.h>
extern "C" __global__ void mma_gemm(const __half* a, const __half* b, float* c, int n) {
  __shared__ __align__(16) __half as[16][24];
  __shared__ __align__(16) __half bs[16][8];
  int t = threadIdx.x, row = blockIdx.y * 16, col = blockIdx.x * 8;
  float d[4] = {};
  for (int k = 0; k < n; k += 16) {
    *reinterpret_cast<uint4*>(&as[t / 2][t % 2 * 8]) = *reinterpret_cast<const uint4*>(a + (row + t / 2) * n + k + t % 2 * 8);
    if (t < 16) *reinterpret_cast<uint4*>(&bs[t][0]) = *reinterpret_cast<const uint4*>(b + (k + t) * n + col);
    __syncthreads();
    unsigned x[4], y[2];
    unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&as[t % 16][t / 16 * 8]));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at));
    at = static_cast<unsigned>(__cvta_generic_to_shared(&bs[t % 16][0]));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(y[0]), "=r"(y[1]) : "r"(at));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) c[(row + t / 4 + i / 2 * 8) * n + col + t % 4 * 2 + i % 2] = d[i];
}
