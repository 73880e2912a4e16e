// what must be refused, or survive
#define STORE(p, v) p[i * m + (i % m)] = (v)
__global__ void changing(const float* x, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int k = 0; k < m; ++k) { out[i * m] += x[k]; if (x[k] > 3) ++k; STORE(out, out[i * m] + 1); }
    int end = m;
    for (int k = 0; k < end; ++k) { out[i * m + k] += x[i]; if (out[i * m + k] < -2) end = k; }
    for (int k = 0; k < m; ++k) { out[i * m + 1] += out[i * m + k] + x[0]; if (k > 2) break; }
    float s = 0;
    for (int k = m; k-- > 0;) { s = s * 0.5f + x[k]; }
    for (int k = 0; k < m; k += 2) s += x[k] * s;
    out[i * m + m - 1] += s;
}
__global__ void shared_sum(const float* x, float* out, int n) {
    __shared__ float part[64];
    part[threadIdx.x] = blockIdx.x * 64 + threadIdx.x < n ? x[blockIdx.x * 64 + threadIdx.x] : 0;
    for (int h = 0; h < 1; ++h) out[5000 + blockIdx.x * 64 + threadIdx.x] += part[threadIdx.x];
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    if (m < 3) return;
    changing<<<(n + 31) / 32, 32>>>(a, c, n, m);
    shared_sum<<<(n + 63) / 64, 64>>>(a, c, n);
}
