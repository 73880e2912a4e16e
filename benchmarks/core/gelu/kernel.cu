#include <math.h>

#define THREADS 256

// tanh approximation of GELU, as in the original BERT code
__global__ void gelu(const float *x, float *y, size_t n)
{
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i];
    y[i] = 0.5 * v * (1.0 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
}

extern "C" void gelu_forward(const float *x, float *y, size_t n)
{
    gelu<<<(n + THREADS - 1) / THREADS, THREADS>>>(x, y, n);
}
