#define AT(i, j) ((i) * cols + (j))
template <typename T, int THREADS>
__global__ void sums(const T* __restrict__ x, const T* w, T* out, unsigned rows, unsigned cols) {
    size_t column = (size_t)blockIdx.x * THREADS + threadIdx.x; /* one a thread */
    if (column >= cols) return;
    for (unsigned r = 0; r < rows; r++) out[column] = out[column] + x[AT(r, column)] * w[column];
    T s = 0;
    for (unsigned r = 0u; r < rows; ++r) {
        T v = x[AT(r, column)]; // a comment; with ] and }
        if (v > 0) s += v;
        else s -= w[column] * v;
    }
    out[column] += s;
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    constexpr int threads = 64;
    sums<float, threads><<<(m + threads - 1) / threads, threads>>>(a, b, c, n, m);
}
