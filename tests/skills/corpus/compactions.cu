// All results are integers.
__device__ bool wanted(float v) { return v > 0.25f; }
__global__ void keep(const float* x, float* kept, int* count, int n) {
    int to = 0;
    for (int i = 0; i < n; ++i)
        if (wanted(x[i]))
            kept[to++] = x[i];
    *count = to;
}
__global__ void keep_in_rows(const float* x, float* kept, int* counts, int n, int m) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    unsigned at = r * m;
    for (int j = 0; j < m; ++j) {
        const float v = x[r * m + j];
        if (v > -0.5f) {
            if (v < 1.0f) { kept[at] = v; ++at; }
        }
    }
    counts[r] = at - r * m;
}
__global__ void ranks_of_chunks(const float* x, int* places, int* kept, int n, int chunks) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < chunks) {
        int rank = c * 7;
        for (int i = c * 7; i < min(n, (c + 1) * 7); ++i) {
            if (x[i] < 0.0f) { places[i] = -1; }
            else { rank += 1; places[i] = rank; kept[rank] = i; }
        }
    }
}
__global__ void steps(const float* x, int* y, int n) {
    int sum = 5;
    for (int i = 0; i < n; ++i) {
        if (!(x[i] > 0)) sum += 3;
        y[i] = sum;
    }
}
__global__ void exclusive(const float* x, int* y, int n) {
    long sum = 0;
    for (int i = 0; i < n; ++i) {
        y[i] = (int)sum;
        sum += (int)(x[i] * 4.0f);
    }
    y[n] = (int)sum;
}
__global__ void exclusive_in_place(int* y, int n) {
    int sum = 0;
    for (int i = 0; i < n; ++i) { y[i] = sum; sum += y[i] & 7; }
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    const int total = n * m;
    keep<<<1, 1>>>(b, c, (int*)(c + 5000), total);
    keep_in_rows<<<(n + 31) / 32, 32>>>(b, c + 5001, (int*)(c + 9200), n, m);
    const int few = min(total, 300), chunks = (few + 6) / 7;
    ranks_of_chunks<<<(chunks + 31) / 32, 32>>>(b, (int*)(c + 9300), (int*)(c + 13400), few, chunks);
    steps<<<1, 1>>>(b, (int*)(c + 9700), min(total, 500));
    exclusive<<<1, 1>>>(b, (int*)(c + 10300), total / 2);
    exclusive_in_place<<<1, 1>>>((int*)(c + 13000), min(total, 100));
}
