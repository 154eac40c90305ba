// The sum of a row of floats per block, compiled by LLVM:
//   clang-19 --target=nvptx64-nvidia-cuda -march=sm_80 -O2 -S -o llvm_block_sum.ptx llvm_block_sum.c
#define SHARED __attribute__((address_space(3)))
SHARED float part[256];

__attribute__((nvptx_kernel)) void block_sum(const float* in, float* out, int n) {
  int t = __nvvm_read_ptx_sreg_tid_x(), threads = __nvvm_read_ptx_sreg_ntid_x(),
      row = __nvvm_read_ptx_sreg_ctaid_x();
  float sum = 0;
  for (int i = t; i < n; i += threads) sum += in[row * n + i];
  part[t] = sum;
  __syncthreads();
  for (int half = threads / 2; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];
    __syncthreads();
  }
  if (t == 0) out[row] = part[0];
}
