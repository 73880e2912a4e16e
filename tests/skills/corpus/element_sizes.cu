// elements of 1, 2 and 8 bytes
__global__ void brighten(const unsigned char* in, unsigned char* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = in[i] > 200 ? 255 : in[i] + 50;
}
__global__ void offsets(const short* a, short* b, short bias, int n) {
    const int k = threadIdx.x + 64 * blockIdx.x;
    if (k < n) {
        short v = a[k];
        b[k] += v * 3 + bias; // wraps
    }
}
__global__ void ramp(double* d, const long long* q, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) { d[i] = (q[i] & 1023) * 0.5 + i; }
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    brighten<<<(4 * n * m + 127) / 128, 128>>>((const unsigned char*)a, (unsigned char*)c, 4 * n * m);
    offsets<<<(n * m + 63) / 64, 64>>>((const short*)b, (short*)(c + 5000), 7, n * m);
    ramp<<<(n * m / 2 + 31) / 32, 32>>>((double*)(c + 9000), (const long long*)b, n * m / 2);
}
