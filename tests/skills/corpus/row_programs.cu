// rows as people write them: several loops, ragged rows, stores on the way
#include <float.h>
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define AT(r, c) ((r) * m + (c))
__global__ void softmax(const float* __restrict__ x, float* __restrict__ y, int n, int m) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    const float* in = x + (size_t)r * m;
    float top = in[0], sum = 0.0f, least = FLT_MAX;
    for (int j = 1; j < m; ++j) { if (in[j] > top) { top = in[j]; } least = in[j] < least ? in[j] : least; }
    for (int j = 0; j < m; ++j) { float e = expf(in[j] - top); y[AT(r, j)] = e; sum = sum + e; }
    for (int j = m - 1; j >= 0; --j) y[AT(r, j)] /= sum;
    y[9000 + r] = sum - least;
}
__global__ void norm(float* y, const float* x, const float* gain, int n, int m) {
    unsigned r = threadIdx.x + blockDim.x * blockIdx.x;
    if (r < n) {
        int j;
        float mean = 0.5f;
        for (j = 0; j < m; j++)
            mean += x[r * m + j];
        mean /= m;
        double var = 0;
        for (j = 0; j < m; j += 2) { float d = x[r * m + j] - mean; if (d < 0) continue; var += d * d; }
        float inv = 1.0f / sqrtf((float)var / m + 1e-5f);
        for (int k = 0; k < m; ++k)
            y[r * m + k] = (x[r * m + k] - mean) * inv * gain[k];
    }
}
__global__ void sparse(const int* start, const float* value, const int* column, const float* x, float* y, int n) {
    int row = blockIdx.x * 64 + threadIdx.x;
    if (row < n) {
        float dot = 0;
        for (int k = start[row]; k < start[row + 1]; ++k) dot = fmaf(value[k], x[column[k]], dot);
        if (dot != 0) y[row] = dot; else y[row] = -1;
        y[row] += 1;
    }
}
__global__ void heads(const float* x, float* y, int n, int m) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    for (int h = 0; h < 3; ++h) {
        float s = 0, top = -FLT_MAX;
        for (int j = 0; j < m; ++j) {
            float t = 0;
            for (int c = 0; c < 4; ++c) t += x[(r + j + c + h) % 200];
            s += t; top = MAX(top, t);
        }
        y[r * 3 + h] = s * top;
    }
    float all = 1.0f;
    int some = 0;
    while (some < 2) {
        for (int j = some; j <= m; j++) all *= 1.0f + 0.01f * x[j];
        ++some;
    }
    y[4000 + r] = all;
}
__global__ void columns(const float* x, float* y, int n, int m) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < n) {
        float s = 0, most = 0;
        for (int r = 0; r < m; ++r) { s -= x[r * n + c]; most = fmaxf(most, fabsf(x[r * n + c])); }
        for (int r = 0; r < m; ++r) y[r * n + c] = x[r * n + c] / (most + 1.0f) + s;
        for (int r = 0; r < m; ++r) y[r * n + c] = y[r * n + c] * 2;
    }
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    int start[100], column[400];
    for (int i = 0; i < 100; ++i) start[i] = (i * i % 7 * i) % 350 > i ? i : i;
    for (int i = 1; i < 100; ++i) start[i] = start[i - 1] + (i * 5) % 7;
    for (int i = 0; i < 400; ++i) column[i] = (i * 37) % 100;
    const int rows = n < 30 ? n : 30;
    if (m > 0) softmax<<<(rows + 31) / 32, 32>>>(b, c + 4300, rows, m);
    norm<<<(n + 127) / 128, 128>>>(c, a, b, n, m);
    sparse<<<(n + 63) / 64, 64>>>(start, b, column, b + 50, c + 13700, n);
    heads<<<(n + 63) / 64, 64>>>(b, c + 14000 - 4000 + 1500, n, m);
    columns<<<(rows + 31) / 32, 32>>>(a, c + 5500, rows, m > 20 ? 20 : m);
}
