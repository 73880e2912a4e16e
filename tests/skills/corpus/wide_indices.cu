// indices of 64 bits: what fits is computed in 32, what may be negative or comes from memory is not
__global__ void split(const float* x, float* y, size_t rows, const size_t cols) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, total = rows * cols;
    if (i >= total) return;
    size_t r = i / cols; const size_t c = i % cols;
    float s = 0;
    for (size_t k = 0; k < cols; k += 2) s += x[r * cols + k] * (float)k;
    y[c * rows + r] = s + x[static_cast<size_t>(threadIdx.x) + r];
}
__device__ float pick(const float* p, long at) { return p[at]; }
__global__ void grid(const float* x, float* y, long n, int w) {
    const long stride = (long)gridDim.x * blockDim.x;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += stride) {
        long long q = (long long)i * w + 1;
        y[i] = pick(x, i) + x[q % n] + x[q >> 2];
    }
}
__global__ void signs(const float* x, float* y, long n) {
    long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n) y[i] = x[i - 1];
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    dim3 blocks((n * m + 63) / 64);
    split<<<blocks, 64>>>(b, c + 2000, n, m);
    if (m > 2) grid<<<(n + 31) / 32, 32>>>(b, c + 7000, n * (long)m, 2); else grid<<<1, 32>>>(b, c + 12000, n, m);
    signs<<<(n + 31) / 32, 32>>>(a, c + 15000, n);
}
