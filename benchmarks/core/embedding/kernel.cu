#include <cuda_runtime.h>

// Look up one row of the table a token.
__global__ void lookup(const long long* tokens, const float* table, float* out, int n_tokens, int dim)
{
    for (int t = blockIdx.x * blockDim.x + threadIdx.x; t < n_tokens; t += gridDim.x * blockDim.x)
        for (int d = 0; d < dim; ++d)
            out[(size_t)t * dim + d] = table[tokens[t] * dim + d];
}

extern "C" void embedding(const long long* tokens, const float* table, float* out, int n_tokens, int dim)
{
    int blocks = (n_tokens + 255) / 256;
    lookup<<<blocks < 1024 ? blocks : 1024, 256>>>(tokens, table, out, n_tokens, dim);
}
