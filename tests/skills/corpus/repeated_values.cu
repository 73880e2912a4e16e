// calls and divisions that stand in several places, some of them with something in between
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
extern "C" void f(const float* a, const float* b, float* c, int n, int m) { repeated<<<(n + 31) / 32, 32>>>(a, b, c, n, m); }
