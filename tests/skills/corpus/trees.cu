// trees in shared memory
#define THREADS 64
__device__ float least(float a, float b) { return a < b ? a : b; }
__global__ void halving(const float* x, float* y, int m) {
    __shared__ float s[THREADS], top[THREADS];
    const int t = threadIdx.x;
    float sum = 0, most = -1e30f;
    for (int i = t; i < m; i += THREADS) { sum += x[blockIdx.x * m + i]; most = fmaxf(most, x[blockIdx.x * m + i]); }
    s[t] = sum; top[t] = most;
    __syncthreads();
    #pragma unroll
    for (unsigned h = blockDim.x / 2; h > 0; h >>= 1) {
        if (t < h) { s[t] += s[t + h]; top[t] = fmaxf(top[t + h], top[t]); }
        __syncthreads();
    }
    y[blockIdx.x * THREADS + t] = s[0] + top[0];
}
template <int N> __global__ void twice(const float* x, float* y, int m) {
    __shared__ float s[N];
    int t = threadIdx.x;
    for (int round = 0; round < 2; ++round) {
        s[threadIdx.x] = t < m ? x[t + round] : 0.0f;
        for (int d = 1; d < N; d *= 2) {
            __syncthreads();
            if ((threadIdx.x & (2 * d - 1)) == 0) s[t] = s[t + d] + s[t];
        }
        __syncthreads();
        if (t == 0) y[round] = s[0];
        __syncthreads();
    }
}
__global__ void extreme(const float* x, float* y, int m) {
    __shared__ int s[256];
    s[threadIdx.x] = threadIdx.x < m ? (int)(x[threadIdx.x] * 100) : 100000;
    __syncthreads();
    for (int h = 128; h >= 1; h /= 2) {
        if (h > threadIdx.x) { if (s[threadIdx.x + h] < s[threadIdx.x]) s[threadIdx.x] = s[threadIdx.x + h]; }
        __syncthreads();
    }
    if (threadIdx.x == 0) *y = s[0] * 0.5f;
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    halving<<<n, THREADS>>>(b, c, m);
    twice<128><<<1, 128>>>(b, c + 12000, m);
    extreme<<<1, 256>>>(b, c + 12100, m);
}
