// RMS norm of half-precision activations, as in Llama: one thread normalises one token.
#include <cuda_fp16.h>

__global__ void rmsnorm(__half* out, const __half* x, const __half* weight, int tokens, int hidden, float eps)
{
    int token = threadIdx.x + blockDim.x * blockIdx.x;
    if (token < tokens) {
        float square_sum = 0.0f;
        for (int i = 0; i < hidden; i++) {
            float v = __half2float(x[token * hidden + i]);
            square_sum += v * v;
        }
        float scale = 1.0 / sqrt(square_sum / hidden + eps);
        for (int i = 0; i < hidden; i++) {
            float v = __half2float(x[token * hidden + i]) * scale;
            out[token * hidden + i] = __float2half(v * __half2float(weight[i]));
        }
    }
}

extern "C" void rms_norm(__half* out, const __half* x, const __half* weight, int tokens, int hidden, float eps)
{
    rmsnorm<<<(tokens + 31) / 32, 32>>>(out, x, weight, tokens, hidden, eps);
}
