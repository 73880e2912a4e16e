// several sums in memory in one loop: kept in registers under a test for overlap
__global__ void forces(const float* at, float* fx, float* fy, float* fz, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    fx[i] = 0.5f;
    fy[i] = 0;  // two of three are set before
    for (int j = 0; j < n; ++j) {
        float d = at[j] - at[i];
        fx[i] += d;
        fy[i] -= d * 0.25f;
        fz[i] += d * d;
    }
}
__global__ void columns(const float* m, float* low, float* high, size_t rows, size_t cols, int first) {
    const size_t c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < cols) {
        for (size_t r = 0; r < rows; ++r) { if (m[r * cols + c] < 0) low[c] += m[r * cols + c] * 0.5f; low[c] *= 1.5f; }
        #pragma unroll 2
        for (int k = (int)rows - 1; k >= first; k -= 2)
            high[c] = high[c] * 0.5f + m[(long long)k * cols + c] + m[(cols - 1 - c) - k + rows];
    }
}
__global__ void strided(const float* x, float* y, float* z, int n) {
    int t = threadIdx.x;
    for (int j = t; j < n; j += blockDim.x) y[t] += x[j];
    for (int j = n; j-- > 0;) z[t] += x[j];
    for (int j = 1; j != 5; ++j) { z[t + 64] += x[2 * j + 1]; y[t + j] += z[t + 64] * 0.5f; }
    if (n > 3) for (unsigned j = 0; j < 6; ++j) { z[t] = z[t] * x[j] + 1; } else z[t] = 2;
}
// Overlap is tried with one thread: with more, the original would be a race.
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    forces<<<(m + 31) / 32, 32>>>(b, c + 4000, c + 5000, c + 6000, m);
    columns<<<(m + 31) / 32, 32>>>(b, c + 7000, c + 8000, n, m, 1);
    strided<<<1, 16>>>(b, c + 9000, c + 9900, m);
    for (int shift = 0; shift < 8; ++shift) {
        float* p = c + 20 * shift;
        forces<<<1, 1>>>(p, p + shift, p + 3, p + 6, m);
        forces<<<1, 1>>>(p + 1, p, p + shift / 2, p + m, m);
        forces<<<1, 1>>>(a, p, p + 1, p + 1 + shift, m);
        columns<<<1, 1>>>(p, p + shift * m, p + shift * m + 1, n, m, 0);
        columns<<<1, 1>>>(p + 4, p + 3 + shift, p + n * m + shift, n, m, 1);
        columns<<<1, 1>>>(p, p + n * m + 9, p + shift + 2 * m, n, m, 0);
        strided<<<1, 1>>>(p, p + shift, p + 66 - 2 * shift, m);
        strided<<<1, 1>>>(p + 64, p + 60 + shift, p + shift, m);
    }
}
