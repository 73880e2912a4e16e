// All results are integers.
__global__ void offsets(const float* x, int* starts, unsigned long long* count, int n) {
    int before = 7;
    long kept = 0;
    for (int i = 0; i < n; ++i) {
        starts[i] = before;
        int length = (int)(x[i] * 8.0f) + 16;
        before += length;
        if (x[i] > 0) kept++;
    }
    starts[n] = before;
    *count = kept;
}
__global__ void ranks(const int* keys, int* places, int n, int m) {
    unsigned r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < n) {
        int rank = -1;
        for (int j = 0; j < m; ++j) {
            ++rank;
            places[(size_t)r * m + j] = rank * 3 + (int)r;
        }
    }
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    int* out = (int*)(c + 1000);
    const int total = n * m;
    offsets<<<1, 1>>>(b, out, (unsigned long long*)(((size_t)(out + 5000) + 7) / 8 * 8), total);
    ranks<<<(n + 31) / 32, 32>>>((const int*)b, out + 6000, n, m);
}
