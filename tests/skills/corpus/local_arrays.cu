// small local arrays indexed by loops and by data
#define BINS 4
template <typename T> __global__ void count(const float* x, T* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    T bins[BINS] = {0};
    for (int k = 0; k < m; ++k) {
        int code = (int)(fabsf(x[k]) * 2) & 3;
        bins[code] += x[k + i];
        if (x[k] > 0) bins[(code + k) % BINS]++; else bins[code ^ 1] = x[k] + 0.5f;
        if (bins[code] > 3) bins[0] -= 1;
    }
    T first = bins[i % BINS] + 2, rest = 0;
    for (int b = BINS - 1; b >= 0; --b) { if (bins[b] < -3) break; rest += bins[b]; }
    out[i] = first - rest;
}
__global__ void window(const float* x, float* out, int n) {
    const int i = blockIdx.x * 32 + threadIdx.x; if (i >= n) return;
    float w[2][5]; int order[5];
    for (int r = 0; r < 2; ++r)
#pragma unroll 1
        for (int c = 0; c < 5; c += 1) w[r][c] = x[i + r + c];
    for (int c = 0; c < 5; ++c) { order[c] = 4 - c; }
    for (int c = 0; c < 4; ++c)
        for (int d = 0; d < 4 - c; ++d)
            if (w[0][d] > w[0][d + 1]) { float t = w[0][d]; w[0][d] = w[0][d + 1]; w[0][d + 1] = t; }
    float s = 0;
    int c = 0;
    while (c < 5) { s += w[1][order[c]] * w[0][c]; ++c; }
    int which = order[(i + 1) % 5];
    order[which] = i;
    out[i] = s + which + order[2] + w[0][2];
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    count<float><<<(n + 31) / 32, 32>>>(a, c + 1000, n, m);
    window<<<(n + 31) / 32, 32>>>(b, c + 2000, n);
}
