__global__ void scale(const float *x, const float *y, float *z, float s, size_t count) {
    size_t i = threadIdx.x + blockDim.x * (size_t)blockIdx.x;
    if (i >= count) return;
    float v = x[i] * 0.1 + y[i]; // double literal
    if (v > 0.5) v = pow(v - 0.25f, 2) + 1e-3 * i;
    z[i] = v < 0 ? 0.01 * v : v;
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    scale<<<(n * m + 127) / 128, 128>>>(a, b, c, 2.0f, n * m);
}
