// All results are integers.
#define BINS 64
typedef unsigned char byte;
__global__ void bytes(const float* x, unsigned int* bins, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) {
        const unsigned char v = (unsigned char)(int)((x[i] + 4.0f) * 20.0f);
        atomicAdd(&bins[v], 1u);  // one
    }
}
__global__ void clamped(const float* __restrict__ x, int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int b = (int)(x[i] * 16.0f + 32.0f);
    if (b < 0) b = 0;
    if (b >= BINS) b = BINS - 1;
    atomicAdd(bins + b, 1);
}
__global__ void skipped(const float* x, int* bins, int n, int count) {
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    if (i < n) {
        int b = (int)(x[i] * 100.0f);
        if (b >= 0 && b < count) atomicMax(&bins[b], i); else if (b < -100) atomicMax(&bins[b + 200], 7);
    }
}
__global__ void rows(const float* __restrict__ x, int* __restrict__ bins, int n, int m) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        for (int k = 0; k < m; ++k)
            if (x[i + k] > 0.0f)
                atomicSub(&bins[(int)(x[i + k] * 50.0f) & 127], k);
            else
                atomicAdd(&bins[(unsigned)(x[i] * x[i] * 9.0f) % 100 + 3], 2);
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    int* out = (int*)(c + 100);
    for (int i = 0; i < 3000; ++i) out[i] = i * 3;
    bytes<<<(n + 31) / 32, 32>>>(a, (unsigned*)out, n);
    clamped<<<(n + 63) / 64, 64>>>(a, out + 300, n);
    skipped<<<(n + 63) / 64, 64>>>(a, out + 700, n, 100);
    rows<<<2, dim3(16, 2)>>>(b, out + 1500, n, m);
}
