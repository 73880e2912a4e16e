// divisions by what stays the same, inverse roots, small divisors
#define WIDTH 7.0f
__global__ void quotients(const float* x, const float* y, float* out, int n, int m) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    float sum = 0.1f, big = 3e38f, tiny = 1e-40f, zero = 0.0f;
    for (int j = 0; j < m; ++j) sum += x[r * m + j] * x[r * m + j];
    for (int j = 0; j < m; ++j) {
        out[r * m + j] = x[r * m + j] / sum + (1.0f + x[j] / sum) / sum;
        out[r * m + j] /= m;
        out[r * m + j] -= x[j] / WIDTH * 2.0f;
    }
    for (int j = 0; j < m; ++j) out[5000 + r] += x[j] / big + x[j] * tiny / tiny;
    if (x[r] > 100.0f) out[5600 + r] = x[r] / zero;
    for (int j = 0; j < 3; ++j) out[6000 + r] = (float)j / 3 - 1.0f / sqrtf(sum + j);
    double wide = sum;
    for (int j = 0; j < m; ++j) wide += x[j] / wide / 2.5 + y[j] / (double)m;
    out[7000 + r] = x[r] / sqrtf(x[r] * x[r] + 1.0f) / sqrtf(sum) + 2.0f / sqrtf(sqrtf(sum));
    out[8000 + r] = (float)(wide / sqrt(wide * wide + 1.0));
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) { quotients<<<(n + 31) / 32, 32>>>(a, b, c, n, m); }
