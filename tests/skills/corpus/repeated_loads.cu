// elements that are loaded again after stores, stored and loaded back, and loops that wait for their loads
__global__ void fill(int* col, int* ptr, int rows, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) col[i] = (i * 7 + 3) % rows;
    if (i <= rows) ptr[i] = (i * i) % 5 + 2 * i;
}
__global__ void adam(float* __restrict__ w, float* __restrict__ m, float* __restrict__ v, const float* __restrict__ g, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    m[i] = 0.9f * m[i] + 0.1f * g[i];
    v[i] = 0.99f * v[i] + 0.01f * g[i] * g[i];  // second moment
    if (v[i] > 1) { w[i] -= m[i]; m[i] += 0.5f; }
    w[i] -= 0.5f * m[i] / (sqrtf(v[i]) + 1e-3f);
    v[i]++; m[i] = m[i] + v[i] / (w[i] * w[i] + 1.0f);
}
__global__ void spmv(const int* ptr, const int* col, const float* x, float* __restrict__ y, float* __restrict__ z, int rows) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) {
        y[r] = x[r] * 0.25f;
        z[r] = x[r] - 1;
        for (int k = ptr[r]; k < ptr[r + 1]; ++k) { y[r] += x[col[k]] * 0.5f; z[r] += y[r] / 3; }
        y[r] += x[r];
        int e = ptr[r + 1];
        for (int k = ptr[r]; k < e; k++) z[r] += x[col[k]];
        for (int k = e; k < e + 23; k += 2) {
            int c = col[k];
            const float value = x[c] /* x[c] */ * 2;
            if (c % 3 == 1) { z[r] -= x[c + 1]; }
            z[r] += value * x[c + 2];
        }
    }
}
__global__ void rest(const float* x, float* __restrict__ y, float* __restrict__ z, int n, size_t m, unsigned last) {
    unsigned t = threadIdx.x;
    float s = 0;
    for (int j = 2; j <= n; ++j) s += x[j] * x[n - j + 2];
    for (size_t j = t; j < m; j += blockDim.x * gridDim.x) y[j] = x[j] * 2 + s;
    for (unsigned j = 1; j <= last; j += 3) { s = s * 0.5f + x[j * 2]; z[j + 70 * t] = s; }
    for (int j = -3; j < n; ++j) s += j < 0 ? 1.0f : x[j];
    y[t] = s;
    z[t] = y[t] + x[t];
    int i = t;
    y[i] = x[i] + s; i += 64; z[i] = y[i] + x[i]; y[i] = z[i] * 0.5f + x[t]; y[t + 1] += y[i] + x[t];
    if (x[t] > 0) { y[t + 2] = x[t]; z[t] += x[t]; }
    for (int j = 0; j < n; ++j) { if (j == 3) y[t] = 7; z[j] = x[t] + y[t]; y[t] += 1; }
}
// the same without restrict, called with overlapping memory: what is not proven must be refused
__global__ void hostile(float* w, float* m, const float* g, int* at, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    m[i] = g[i] + w[i]; w[i] = g[i] * m[i]; m[i] += g[i] * w[i];
    at[i] = i; w[at[i]] += g[i]; m[i] = w[at[i]] + g[at[i]];
    for (int j = 0; j < n + 20; ++j) { w[j] += g[j]; m[j + 1] = g[j] * 0.5f; }
    for (int j = 0; j < n + 20; ++j) w[j] = w[j + 1] + g[j];
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    int* col = (int*)(c + 9000); int* ptr = (int*)(c + 14000);
    fill<<<(n * m + 400) / 32, 32>>>(col, ptr, n, n * m + 300);
    int count = n * m < 2000 ? n * m : 2000;
    adam<<<(count + 31) / 32, 32>>>(c + 100, c + 2200, c + 4300, c + 6400, count);
    spmv<<<(n + 31) / 32, 32>>>(ptr, col, c + 150, c + 8500, c + 8700, n);
    rest<<<1, 1>>>(c + 200, c + 15000, c + 15400, m, n, m);
    for (int shift = 0; shift < 4; ++shift) {
        float* p = c + 2000 + 100 * shift;
        hostile<<<1, 1>>>(p, p + shift, p + 2 * shift, (int*)(p + 200), 1);
        hostile<<<1, 1>>>(p, p + 1 - shift, p, (int*)(c + 14500), 1);
        hostile<<<1, 1>>>(p + 50, p, a, (int*)p, 1);
    }
}
