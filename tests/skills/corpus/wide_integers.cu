// Sequences of 64-bit integers, of which some leave 32 bits. All results are integers.
typedef unsigned long long u64;
__device__ u64 divisor(u64 a, u64 b) {
    while (b != 0) { u64 rest = a % b; a = b; b = rest; }
    return a;
}
__global__ void sequences(const float* a, float* c, int n, int limit) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u64 value = (u64)((a[i] + 2) * 1000) + ((u64)(i % 3) << 33) + 1;
    int count = 0;
    while (value != 1 && count < limit) {
        value = value & 1 ? 3 * value + 1 : value >> 1;
        count++;
    }
    c[i] = (float)(count + (int)(value % 1000));
}
__global__ void powers(const float* a, float* c, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) {
        long long base = (long long)((a[i] + 2) * 5000), left = 40 + i, power = 1;
        for (; left > 0; left /= 2) {
            if (left % 2) power = power * base % 30011;
            base = base * base % 30011;
            if (power == 0) break;
        }
        c[i] = (float)(divisor(power, 360) + power);
    }
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    sequences<<<(n * m + 63) / 64, 64>>>(a, c, n * m, 99);
    powers<<<(n + 31) / 32, 32>>>(b, c + 8000, n);
}
