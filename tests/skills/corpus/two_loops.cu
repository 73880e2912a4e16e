// loops that may become one, and loops that only look so; indices of counters; branches that choose values
#define STEP 1
__global__ void two(const float* x, const float* y, float* out, int n, int m) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    float low = x[r], high = x[r];
    for (int j = 0; j < m; ++j) low = fminf(low, x[r * m + j]);
    int hits = 0;
    for (int k = 0; k < m; k++) { if (x[r * m + k] < 0.f) continue; hits += 1; high = fmaxf(high, x[r * m + k]); }
    for (int j = 0; j < m; j += STEP) { float d = x[r * m + j]; out[r * m + j] = d * low; }
    for (int j = 0; j < m; j += STEP) { float d = out[r * m + j]; out[r * m + j] = d + high; }
    float carry = 0;
    for (int j = 0; j < m; ++j) carry += out[r * m + j];
    for (int j = 0; j < m; ++j) out[r * m + j] = carry;
    for (int j = 0; j < m; ++j) out[r * m + j] += y[j];
    for (int j = 0; j < m; ++j) out[r * m + m - 1 - j] += out[r * m + j] * 0.5f;
    int i;
    for (i = 0; i < m; i++) hits += i;
    for (i = 0; i < m; i++) out[5000 + r] += y[i] * hits;
    float part[4] = {0, 0, 0, 0};
    for (unsigned u = 0; u < 4; ++u) part[u] = x[u] + i;
    for (unsigned v = 0; v < 4; ++v) part[v] += y[v];
    for (unsigned v = 0; v < 4; ++v) out[5500 + 4 * r + v] = part[3 - v];
    for (unsigned char c = 0; c < 5; ++c) out[7000 + r + (unsigned char)(c * 128)] = c;
    for (unsigned char c = 0; c < 5; ++c) out[7000 + r + (unsigned char)(c * 128)] += 1;
}
__global__ void carried(const float* x, const float* y, float* out, int n, int m, int d, unsigned p) {
    const int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    float s = 0.0f, top = x[r];
    int where = -1;
    unsigned char small = 250;
    for (int k = 0; k < m; ++k) {
        if (k == 4) continue;
        s += x[k * n + r] * (k % d) + (float)(k / d);
        if (x[k] > top) { top = x[k]; where = k; }
        if (s > 3.5f) small++; else small += 2.9f;
    }
    for (unsigned k = threadIdx.x; k < 2u * m + 40u; k += 3) {
        out[r * 64 + k % p % 64] += (float)(k / p);
        if (k > 7 && x[k] > 0) s -= 0.5f * k; else if (s < 0) s = where;
    }
    for (int k = m - 1; k >= 0; k -= 2) s += y[(size_t)k * (size_t)n + r] * (k / d);
    for (int k = threadIdx.x; k < m; k += blockDim.x) { int row = k / (d), col = k % d; s += row - col; }
    if (r % 2) s = where; else { s += 1; top = s > 2 ? s : top; }
    out[12000 + r] = s + top + where + small;
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    two<<<(n + 31) / 32, 32>>>(a, b, c, n, m);
    carried<<<(n + 31) / 32, 32>>>(a, b, c, n, m, 3, 5);
    carried<<<(n + 31) / 32, 32>>>(a, b, c, n, m, -4, 4000000000u);
}
