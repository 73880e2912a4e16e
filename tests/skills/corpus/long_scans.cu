// All results are integers.
// running sums of one thread, long enough for several blocks
__device__ int weight(int v) { return (v & 7) - 3; }
__global__ void offsets_in_place(int* sums, int* total, int count) {
    int running = 5, unused = 2;
    for (int b = 0; b < count; b++) {
        int sum = sums[b];  // exclusive
        sums[b] = running;
        running += weight(sum);
    }
    // behind the loop
    *total = running * unused;
    if (count > 3) total[1] = running - count;
}
__global__ void inclusive(const unsigned* __restrict__ x, unsigned long long* __restrict__ y, unsigned from, unsigned n) {
    unsigned long long acc = 0;
    for (unsigned i = from; i < n; ++i) {
        if (x[i] % 3 != 1) acc += x[i] >> 20;
        y[i] = acc;
    }
}
__global__ void guarded_end(const short* __restrict__ x, int* __restrict__ y, long n) {
    int acc = -1;
    for (long i = 0; i < n - 1; i += 1) {
        acc = acc + x[i];
        y[i + 1] = acc;
    }
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    int* out = (int*)(c + 1000);
    const int total = n * m;
    offsets_in_place<<<1, 1>>>(out, out + 8000, total);
    inclusive<<<1, 1>>>((const unsigned*)b, (unsigned long long*)(((size_t)(out + 5000) + 7) / 8 * 8), 2, total < 1000 ? total : 1000);
    guarded_end<<<1, 1>>>((const short*)b, out + 9000, total);
}
