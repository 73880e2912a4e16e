// divisions by what stays the same, inverse roots, powers of two, small divisors; values that stand in several places
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
    float square = x[r] * x[r] + 0.5f, root = sqrtf(square), cube = root * square;
    out[8200 + r] = y[r] / cube + y[r] / (root * root) - 1.0f / (square * square * root);
    out[8300 + r] = powf(2.0f, x[r]) * powf(10.0f, y[r]) + logf(square) / logf(2.0f);
}
__global__ void repeated(const float* x, const float* y, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float top = x[i], s = 0.0f;
    for (int j = 0; j < m; ++j) {
        out[i * m + j] = expf(x[j] - top) * 2.0f;
        s += expf(/* ) */ x[j] - top);
        out[i * m + j] += expf(y[j] - top) / top;
        for (int k = 0; k < 2; ++k) s += expf((y[j] - top)) * k;
        s -= (expf(y[j] - top) / top);
    }
    float t = sqrtf(fabsf(s)) + 1.0f / (s + 4.0f);
    if (s > 0) t += sqrtf(fabsf(s));
    s = sqrtf(fabsf(s)) + 1.0f / (s + 4.0f);
    t += sqrtf(fabsf(s));
    { float s = 2.0f; t += sqrtf(fabsf(s)) + cosf(s); s += cosf(s); }
    float u = n > 3 ? sinf(t) : 0.0f, v = sinf(t) + sinf(t);
    out[9000 + i] = u + v + t + s;
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    repeated<<<(n + 31) / 32, 32>>>(a, b, c, n, m);
    quotients<<<(n + 31) / 32, 32>>>(a, b, c, n, m);
}
