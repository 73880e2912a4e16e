__global__ void total(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out, x[i]);
}
extern "C" void f_total(const float* a, const float* b, float* c, int n, int m) { total<<<(n + 255) / 256, 256>>>(a, c, n); }

__global__ void dot(float* r, const float* p, const float* q, size_t n) {
    float a = 0.f;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) a += p[i] * q[i];
    atomicAdd(&r[0], a);
}
extern "C" void f_dot(const float* a, const float* b, float* c, int n, int m) { dot<<<4, 8>>>(c, a, b, n); }

__global__ void histogram(const unsigned char* p, unsigned int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[p[i]], 1u);
}
extern "C" void f_histogram(const float* a, const float* b, float* c, int n, int m) { histogram<<<(n + 255) / 256, 256>>>((const unsigned char*)a, (unsigned*)c, n); }

__global__ void scattered(const int* index, const float* value, float* out, long count) {
    long stride = (long)gridDim.x * blockDim.x;
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) atomicAdd(out + (index[i] & 63), value[i]);
}
extern "C" void f_scattered(const float* a, const float* b, float* c, int n, int m) {
    long blocks = (n + 15) / 16;
    if (blocks > 3) blocks = 3;
    scattered<<<(int)blocks, 16>>>((const int*)b, a, c, n);
}

__global__ void extremes(const int* x, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicMax(&out[0], x[i]);
    atomicMin(&out[1], x[i]);
    if (x[i] > 0) atomicOr(&out[2], x[i]);
}
extern "C" void f_extremes(const float* a, const float* b, float* c, int n, int m) { extremes<<<(n + 15) / 16, 16>>>((const int*)a, (int*)c, n); }

__device__ unsigned xorshift(unsigned& s) {
    s ^= s << 13;
    s ^= s >> 17;
    s ^= s << 5;
    return s;
}
__global__ void darts(unsigned* hits, unsigned seed, int threads, int trials) {
    const int id = blockIdx.x * 32 + threadIdx.x;
    if (id >= threads) return;
    unsigned state = (id + 1) * 2654435761u ^ seed;
    if (state == 0) state = 1;
    for (int t = 0; t < trials; ++t) {
        const unsigned r = xorshift(state);
        const unsigned x = r >> 17;
        const unsigned y = (r >> 2) & 0x7fff;
        if (x * x + y * y < (1u << 30)) atomicAdd(hits, 1u);
    }
}
extern "C" void f_darts(const float* a, const float* b, float* c, int n, int m) { darts<<<(n + 31) / 32, 32>>>((unsigned*)c, 12345u, n, m); }
