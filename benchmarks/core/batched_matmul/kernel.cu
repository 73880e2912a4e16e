#include <cuda_runtime.h>

// out[b] = lhs[b] * rhs[b] for many small square matrices; one block a matrix.
__global__ void small_gemm(const float* lhs, const float* rhs, float* out, int dim)
{
    const size_t base = (size_t)blockIdx.x * dim * dim;
    for (int row = threadIdx.x; row < dim; row += blockDim.x) {
        for (int col = 0; col < dim; ++col) {
            out[base + row * dim + col] = 0;
            for (int k = 0; k < dim; ++k)
                out[base + row * dim + col] += lhs[base + row * dim + k] * rhs[base + k * dim + col];
        }
    }
}

extern "C" void batched_gemm(const float* lhs, const float* rhs, float* out, int batch, int dim)
{
    small_gemm<<<batch, 32>>>(lhs, rhs, out, dim);
}
