// C = A * B in half precision with single-precision sums; row-major.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__global__ void hgemm(const half *a, const half *b, half *c, int m, int n, int k)
{
    const int col = threadIdx.x + blockIdx.x * blockDim.x;
    const int row = threadIdx.y + blockIdx.y * blockDim.y;
    if (row >= m || col >= n)
        return;

    float acc = 0.0f;
    for (int i = 0; i < k; ++i)
        acc += __half2float(a[row * k + i]) * __half2float(b[i * n + col]);
    c[row * n + col] = __float2half(acc);
}

extern "C" cudaError_t matmul_half(const half *a, const half *b, half *c, int m, int n, int k)
{
    const dim3 threads(16, 16);
    const dim3 blocks((n + threads.x - 1) / threads.x, (m + threads.y - 1) / threads.y);
    hgemm<<<blocks, threads>>>(a, b, c, m, n, k);
    return cudaGetLastError();
}
