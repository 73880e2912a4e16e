// running sums
__global__ void rows(const float* __restrict__ x, float* __restrict__ y, float* __restrict__ ends, int n, int m) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    float sum = 0.25f, most = -1e30f;
    for (int j = 0; j < m; j++) {
        const float v = x[r * m + j], w = v * 0.5f;
        sum += w + v;  // inclusive
        most = fmaxf(most, sum);
        y[r * m + j] = sum;
    }
    ends[r] = sum + most;
}
__global__ void in_place(float* y, int m) {
    float running = 0;
    int i;
    for (i = 0; i < m; ++i) { float v = y[i]; y[i] = running; running = v + running; }
    y[m] = running;
}
__global__ void nested(const float* __restrict__ x, float* __restrict__ y, int m) {
    double wide = 0;
    for (int k = 1; k <= m; ++k)
        y[k] = wide += x[k];
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    rows<<<(n + 63) / 64, 64>>>(a, c + 5000, c + 4900, n, m);
    in_place<<<1, 1>>>(c + 10000, n * m < 1500 ? n * m : 1500);
    nested<<<1, 1>>>(b, c + 13000, n * m < 1500 ? n * m : 1500);
}
