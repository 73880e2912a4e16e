#include <cuda_runtime.h>

// out = (x - mean) / sqrt(var + eps) * gamma + beta, over the last dimension
__global__ void layer_norm_fwd(float* out, const float* x, const float* gamma, const float* beta, int N, int C, float eps)
{
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= N) return;

    float mean = 0.0f;
    for (int c = 0; c < C; c++) {
        mean += x[n * C + c];
    }
    mean = mean / C;

    float var = 0.0f;
    for (int c = 0; c < C; c++) {
        float d = x[n * C + c] - mean;
        var += d * d;
    }
    var = var / C;

    float rstd = 1.0f / sqrtf(var + eps);
    for (int c = 0; c < C; c++) {
        out[n * C + c] = (x[n * C + c] - mean) * rstd * gamma[c] + beta[c];
    }
}

void layernorm(float* out, const float* x, const float* gamma, const float* beta, int N, int C, float eps)
{
    const int block_size = 256;
    const int grid_size = (N + block_size - 1) / block_size;
    layer_norm_fwd<<<grid_size, block_size>>>(out, x, gamma, beta, N, C, eps);
}
