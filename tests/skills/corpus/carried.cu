// products, quotients and remainders of counters; branches that choose values
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
    carried<<<(n + 31) / 32, 32>>>(a, b, c, n, m, 3, 5);
    carried<<<(n + 31) / 32, 32>>>(a, b, c, n, m, -4, 4000000000u);
}
