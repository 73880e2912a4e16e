// long reductions of few results, and grid-stride kernels
__global__ void statistics(const float* x, float* y, int n, int m) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= n) return;
    float s = 1.5f, most = -1e30f, p;
    for (int r = m - 1; r >= 0; --r) { p = x[r * n + c]; s += p; if (most < p) most = p; }
    y[c] = s / (m + 1);
    y[n + c] = most;
}
template <typename T> __global__ void total(const T* x, T* y, int n, int m, T bias) {
    int c = threadIdx.x + blockIdx.x * blockDim.x;
    if (c < n + 1) {
        float s = bias;
#pragma unroll 4
        for (int r = 1; r <= m; r += 2)
            s = fmaf(x[r * n + c], 0.5f, s);
        if (s > 0) y[c] = s; else y[c] = -s;
    }
}
__global__ void scale(const float* x, float* y, int n) {
    for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += gridDim.x * blockDim.x) y[i] = x[i] * 2 + i;
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    statistics<<<(n + 63) / 64, 64>>>(a, c + 9000, n, m);
    total<float><<<dim3((n + 32) / 32), 32, 0, 0>>>(a, c + 10000, n, m, 2.0f);
    scale<<<7, 64>>>(b, c + 11000, n);
    scale<<<(n + 31) / 32, 32>>>(b + 5, c + 12000, n);
}
