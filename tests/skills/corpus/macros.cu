// Short names are macros here: what a rewrite adds may not use them for something of its own.
#define N 20
#define T float
#define V 4
#define C 3
#define B 64
#define value 6
#define other 7
#define step 8
#define first 9
#define warp 10
#define parts 11
#define SUM(a, b) ((a) + (b))
__global__ void scaled(const T* x, const T* gain, T* out, int n, int m) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < n) {
        T total = 0;
        for (int k = 0; k < m; ++k) total = SUM(total, x[r * m + k] * x[r * m + k]);
        for (int k = 0; k < m; ++k) out[r * m + k] = x[r * m + k] * gain[k % N] / (total + N);
    }
}
extern "C" void f(const T* a, const T* b, T* c, int n, int m) { scaled<<<(n + B - 1) / B, B>>>(a, b, c, n, m); }
