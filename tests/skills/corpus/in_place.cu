__global__ void step(float* w, float* m, const float* g, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) {
        m[i] = 0.9f * m[i] + 0.1f * g[i];
        w[i] -= 0.5f * m[i];
    }
}
__global__ void twice(float* w, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { w[i] *= 2; if (w[i] > 8) { w[i] = 1; return; } w[i] += i % 3; }
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    step<<<(n * m + 255) / 256, 256>>>(c, c + 4096, a, n * m);
    dim3 g((n * m - 1) / 32 + 1), t(32);
    if (n * m > 0) twice<<<g, t>>>(c, n * m);
}
