// y = a * x + y on vectors of four floats; n counts float4 elements.
#include <cuda_runtime.h>

__global__ void axpy4(float a, const float4 *x, float4 *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float4 v = x[i];
    float4 w = y[i];
    w.x += a * v.x;
    w.y += a * v.y;
    w.z += a * v.z;
    w.w += a * v.w;
    y[i] = w;
}

extern "C" void axpy(float a, const float4 *x, float4 *y, int n)
{
    const int threads = 256;
    axpy4<<<(n + threads - 1) / threads, threads>>>(a, x, y, n);
}
