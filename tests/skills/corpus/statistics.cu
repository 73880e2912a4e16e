// two passes over a row that may be one, and pairs that must stay two
#include <float.h>
__global__ void softmaxes(const float* x, const float* scale, float* out, int n, int m) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    const float* row = x + (size_t)r * m;
    float top = -FLT_MAX;
    for (int j = 0; j < m; ++j) { float v = row[j] /* ; } */ * 0.5f; if (v > top) top = v; }
    float sum = 0.f;
    for (int k = 0; k < m; k++) sum += expf(row[k] * 0.5f - top);  // same elements
    float high = row[0];
    for (int j = 1; j < m; j++)
        high = fmaxf(row[j], high);
    float total = 1e-3f;
    for (int j = 0; j < m; j++) {
        const float e = expf((row[j] - high) * scale[r & 3]);
        total = total + e;
    }
    const float t = scale[1] + 2.0f;
    float largest = -INFINITY, weight = 0.0f;
    for (int j = 0; j < m; ++j) largest = row[j] > largest ? row[j] : largest;
    for (int j = 0; j < m; ++j) { float e = exp(t * (row[j] - largest)); out[r * m + j] = e; weight += e; }
    for (int j = 0; j < m; ++j) out[r * m + j] /= weight;
    out[6000 + r] = logf(sum) + top;
    out[7000 + r] = total;
}
__global__ void moments(const float* x, float* out, int n, int m) {
    const int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < n) {
        double sum = 0.0;
        for (int i = 0; i < m; i++) sum += x[r * m + i];
        float mean = 0;
        for (int i = 0; i < m; i++) mean += x[r * m + i] * 2.0f;
        mean /= (float)m;
        float var = 0;
        for (int q = 0; q < m; q++) { float d = mean - x[r * m + q] * 2.0f; var += d * d; }
        float s = 0;
        for (int i = 0; i < m; i++) s = x[r * m + i] + s;
        const float inv = 1.0f / m, mu = s * inv;
        float q = 0;
        for (int i = 0; i < m; i++) q += powf(x[r * m + i] - mu, 2.0f);
        float other = 0;  // not the mean
        for (int i = 0; i < m; i++) other += x[r * m + i];
        other /= n;
        for (int i = 0; i < m; i++) q += (x[r * m + i] - other) * (x[r * m + i] - other);
        out[8000 + r] = var / m + (float)sum;
        out[9000 + r] = q;
    }
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    softmaxes<<<(n + 31) / 32, 32>>>(a, b, c, n, m);
    moments<<<(n + 63) / 64, 64>>>(a, c, n, m);
}
