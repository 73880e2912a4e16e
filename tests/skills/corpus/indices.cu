__global__ void gather(const float* x, float* out, unsigned total, unsigned period, int width) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
        int j = (int)i - 5;
        out[i] = x[i % period] + i / period + (j + 1) % width + (j / width) % width - (j - 3) / width;
    }
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) { gather<<<4, 64>>>(a, c, n * m, n, m); }
