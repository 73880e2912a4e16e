// All results are integers.
#define INDEX(axis) (blockIdx.axis * blockDim.axis + threadIdx.axis)
template <typename T> __global__ void count(const float* x, T* found, int* sum, const int n) {
    int i = INDEX(x);
    if (i < n) {
        int v = (int)(x[i] * 1000.0f);
        atomicAdd(sum, v);
        atomicAdd(&sum[1], -v);
        if (v % 2) atomicAdd(found, 1);
    }
}
__global__ void flags(const float* x, unsigned* bits, int n) {
    unsigned i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n) return;
    atomicOr(&bits[0], 1u << (i % 31));
    atomicOr(bits + 1, (unsigned)(x[i] > 1.0f));
}
__global__ void extremes(const float* x, int* most, int n) {
    int i = threadIdx.x + blockDim.x * blockIdx.x;
    if (i < n && x[i] > 0.5f) atomicMax(most, (int)(x[i] * 77.0f));
}
__global__ void least(const float* x, unsigned* least, int n) {
    int i = threadIdx.x + blockDim.x * blockIdx.x;
    if (i < n) { if (x[i] < 0.0f) return; atomicMin(least, (unsigned)(x[i] * 77.0f)); }
}
__global__ void wide(const float* x, unsigned long long* sum, int n) {
    int i = threadIdx.x + blockDim.x * blockIdx.x;
    if (i < n) atomicAdd((unsigned long long*)sum, (unsigned long long)(x[i] * x[i] * 4096.0f));
}
__global__ void any_block(const float* x, int* sum, int n, int m) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < m && r < n; ++k) atomicAdd(&sum[16 + blockIdx.x % 2], (int)(x[(r + k) % 100] * 64.0f));
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    int* out = (int*)(c + 400);
    for (int i = 0; i < 64; ++i) out[i] = i;
    count<unsigned><<<(n + 95) / 96, 96>>>(a, (unsigned*)out, out + 8, n);
    flags<<<(n + 63) / 64, 64>>>(b, (unsigned*)out + 12, n);
    extremes<<<(n + 31) / 32, 32>>>(a, out + 14, n);
    least<<<(n + 63) / 64, 64>>>(a, (unsigned*)out + 15, n);
    wide<<<(n + 63) / 64, 64>>>(b, (unsigned long long*)(((size_t)(out + 16) + 7) / 8 * 8), n);
    any_block<<<(n + 31) / 32, 32>>>(b, out + 20, n, m);
}
