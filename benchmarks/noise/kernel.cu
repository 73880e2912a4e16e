// Every thread follows eight chains of multiply-adds. The work is counted: ROUNDS rounds that y needs, and
// EXTRA rounds beside them, whose result counts `zero` times. Time goes with their sum and with nothing else.
constexpr int ROUNDS = 1000;
constexpr int EXTRA = 30;
constexpr int CHAINS = 8;

__device__ float follow(float start, float slope, float step, int rounds)
{
    float value[CHAINS];
#pragma unroll
    for (int k = 0; k < CHAINS; ++k) value[k] = start + k;
#pragma unroll 2
    for (int r = 0; r < rounds; ++r)
#pragma unroll
        for (int k = 0; k < CHAINS; ++k) value[k] = fmaf(slope, value[k], step);
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < CHAINS; ++k) sum += value[k];
    return sum;
}

__global__ void spin_kernel(const float *x, float *y, float slope, float step, float zero, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = follow(x[i], slope, step, ROUNDS) + zero * follow(x[i], slope, step, EXTRA);
}

extern "C" void spin(const float *x, float *y, float slope, float step, float zero, int n)
{
    spin_kernel<<<(n + 255) / 256, 256>>>(x, y, slope, step, zero, n);
}
