#include <float.h>
#define EPS 1e-5f

__global__ void softmax(const float* in, float* out, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float* x = in + r * cols;
    float* y = out + r * cols;
    float m = -INFINITY;
    for (int i = 0; i < cols; i++) m = fmaxf(m, x[i]);
    float s = 0.f;
    for (int i = 0; i < cols; i++) s += expf(x[i] - m);
    for (int i = 0; i < cols; i++) y[i] = expf(x[i] - m) / s;
}
extern "C" void f_softmax(const float* a, const float* b, float* c, int n, int m) { softmax<<<(n + 127) / 128, 128>>>(a, c, n, m); }

__global__ void softmax_read_back(float* dst, const float* src, long long width, long long height) {
    long long line = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (line < height) {
        float top = src[line * width];
        for (long long j = 1; j < width; ++j) { float v = src[line * width + j]; if (v > top) top = v; }
        float den = 0.0f;
        for (long long j = 0; j < width; ++j) {
            float e = expf(src[line * width + j] - top);
            dst[line * width + j] = e;
            den += e;
        }
        for (long long j = 0; j < width; ++j) dst[line * width + j] /= den;
    }
}
extern "C" void f_softmax_read_back(const float* a, const float* b, float* c, int n, int m) {
    const int tpb = 64;
    softmax_read_back<<<(n + tpb - 1) / tpb, tpb>>>(c, a, m, n);
}

__global__ void softmax_in_place(float* scores, int rows, int len) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float* s = scores + row * len;
    float top = s[0];
    for (int i = 1; i < len; i++) top = fmaxf(top, s[i]);
    float sum = 0.0f;
    for (int i = 0; i < len; i++) { s[i] = expf(s[i] - top); sum += s[i]; }
    for (int i = 0; i < len; i++) s[i] = s[i] / sum;
}
extern "C" void f_softmax_in_place(const float* a, const float* b, float* c, int n, int m) { softmax_in_place<<<(n + 31) / 32, 32>>>(c, n, m); }

__global__ void layer_norm(const float* x, const float* gamma, float* y, int n, int d) {
    int row = threadIdx.x + blockIdx.x * blockDim.x;
    if (row < n) {
        float mean = 0.0f;
        for (int k = 0; k < d; ++k) mean += x[row * d + k];
        mean /= d;
        float var = 0.0f;
        for (int k = 0; k < d; ++k) { float t = x[row * d + k] - mean; var += t * t; }
        var /= d;
        float inv = 1.0f / sqrtf(var + EPS);
        for (int k = 0; k < d; ++k) y[row * d + k] = (x[row * d + k] - mean) * inv * gamma[k] + gamma[d + k];
    }
}
extern "C" void f_layer_norm(const float* a, const float* b, float* c, int n, int m) { layer_norm<<<(n + 255) / 256, 256>>>(a, b, c, n, m); }

// In place, walking pointers, one thread a block.
__global__ void rms(float* v, const float* g, int d, float eps) {
    float* p = v + (size_t)blockIdx.x * d;
    float ss = 0.f;
    const float* q = p;
    for (int i = 0; i < d; i++, q++) ss += *q * *q;
    float scale = 1.0f / sqrtf(ss / (float)d + eps);
    for (int i = 0; i != d; ++i) p[i] = p[i] * scale * g[i];
}
extern "C" void f_rms(const float* a, const float* b, float* c, int n, int m) { rms<<<n, 1>>>(c, b, m, 1e-6f); }

__global__ void column_mean(const float* a, float* mean, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cols) return;
    mean[c] = 0.f;
    for (int r = 0; r < rows; ++r) mean[c] += a[r * cols + c];
    mean[c] /= rows;
}
extern "C" void f_column_mean(const float* a, const float* b, float* c, int n, int m) { column_mean<<<(m + 255) / 256, 256>>>(a, c, n, m); }

__global__ void arg_max(const float* a, int* c, int r, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= r) return;
    float m = a[i * n];
    int w = 0;
    for (int j = 1; j < n; ++j)
        if (a[i * n + j] > m) { m = a[i * n + j]; w = j; }
    c[i] = w;
}
extern "C" void f_arg_max(const float* a, const float* b, float* c, int n, int m) { arg_max<<<(n + 127) / 128, 128>>>(a, (int*)c, n, m); }

__global__ void welford(const float* x, float* y, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float mean = 0.0f, m2 = 0.0f;
    int seen = 0;
    for (int j = 0; j < cols; ++j) {
        ++seen;
        float delta = x[row * cols + j] - mean;
        mean += delta / seen;
        m2 += delta * (x[row * cols + j] - mean);
    }
    y[2 * row] = mean;
    y[2 * row + 1] = m2 / cols;
}
extern "C" void f_welford(const float* a, const float* b, float* c, int n, int m) { welford<<<(n + 127) / 128, 128>>>(a, c, n, m); }

__global__ void online(const float* x, float* y, int rows, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float m = -1e30f, s = 0.f;
    for (int j = 0; j < n; ++j) {
        float o = m;
        m = fmaxf(m, x[r * n + j]);
        s = s * expf(o - m) + expf(x[r * n + j] - m);
    }
    y[r] = m + logf(s);
}
extern "C" void f_online(const float* a, const float* b, float* c, int n, int m) { online<<<(n + 127) / 128, 128>>>(a, c, n, m); }

__global__ void inclusive_scan(const float* x, float* y, int rows, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float s = 0.f;
    for (int j = 0; j < n; ++j) { s += x[r * n + j]; y[r * n + j] = s; }
}
extern "C" void f_inclusive_scan(const float* a, const float* b, float* c, int n, int m) { inclusive_scan<<<(n + 127) / 128, 128>>>(a, c, n, m); }

__global__ void exclusive_scan_in_place(int* y, int rows, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    int running = 0;
    for (int j = 0; j < n; ++j) {
        int here = y[r * n + j] & 0xff;
        y[r * n + j] = running;
        running += here;
    }
}
extern "C" void f_exclusive_scan_in_place(const float* a, const float* b, float* c, int n, int m) { exclusive_scan_in_place<<<(n + 127) / 128, 128>>>((int*)c, n, m); }

__global__ void attention(const float* q, const float* kk, float* o, int n, int d, float scale) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float m = -1e30f;
    for (int j = 0; j < n; ++j) {
        float s = 0;
        for (int e = 0; e < d; ++e) s += q[i * d + e] * kk[j * d + e];
        m = fmaxf(m, s * scale);
    }
    float z = 0;
    for (int j = 0; j < n; ++j) {
        float s = 0;
        for (int e = 0; e < d; ++e) s += q[i * d + e] * kk[j * d + e];
        z += expf(s * scale - m);
    }
    for (int f = 0; f < d; ++f) {
        float r = 0;
        for (int j = 0; j < n; ++j) {
            float s = 0;
            for (int e = 0; e < d; ++e) s += q[i * d + e] * kk[j * d + e];
            r += expf(s * scale - m) / z * kk[j * d + f];
        }
        o[i * d + f] = r;
    }
}
extern "C" void f_attention(const float* a, const float* b, float* c, int n, int m) {
    attention<<<(n % 8 + 63) / 64, 64>>>(a, b, c, n % 8, m % 8, 0.5f);
}

__global__ void two_sums(const float* x, float* y, int rows, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) {
        float total = 0.25f;
        for (int j = 0; j < n; ++j) {
            total += x[r * n + j];
            for (int k = 0; k < 3; ++k) total += x[k] * x[j];
        }
        float nested = 0;
        for (int j = 0; j < n; ++j)
            for (int k = j; k < n; ++k) nested += x[r * n + j] * x[k];
        y[2 * r] = total;
        y[2 * r + 1] = nested;
    }
}
extern "C" void f_two_sums(const float* a, const float* b, float* c, int n, int m) { two_sums<<<(n + 127) / 128, 128>>>(a, c, n, m); }

__global__ void horner(const float* x, const float* coefficients, float* y, int n, int degree) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float value = 0;
        for (int k = degree; k >= 0; k--) value = value * x[i] * 0.1f + coefficients[k];
        y[i] = value;
    }
}
extern "C" void f_horner(const float* a, const float* b, float* c, int n, int m) { horner<<<2, 16>>>(a, b, c, n, m); }

__global__ void last_and_count(const float* x, float* y, int rows, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float last = -1.0f, largest = x[0];
    int count = 0, position = -1;
    bool any = false;
    for (int j = 0; j < n; j++) {
        float v = x[r * n + j];
        last = v * 2.0f;
        if (v > 0.5f) { count++; position = j; any = true; }
        if (v > 0.0f && v > largest) largest = v;
    }
    y[5 * r] = last;
    y[5 * r + 1] = count;
    y[5 * r + 2] = position;
    y[5 * r + 3] = any ? 1.0f : 0.0f;
    y[5 * r + 4] = largest;
}
extern "C" void f_last_and_count(const float* a, const float* b, float* c, int n, int m) { last_and_count<<<(n + 127) / 128, 128>>>(a, c, n, m); }

__global__ void product(const float* x, float* y, int rows, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float p = 1.0f, least = x[r * n], difference = 0.0f;
    for (int j = 0; j < n; j++) {
        p *= x[r * n + j];
        least = x[r * n + j] < least ? x[r * n + j] : least;
        difference -= x[r * n + j];
    }
    y[3 * r] = p;
    y[3 * r + 1] = least;
    y[3 * r + 2] = difference;
}
extern "C" void f_product(const float* a, const float* b, float* c, int n, int m) { product<<<(n + 127) / 128, 128>>>(a, c, n, m); }

__global__ void log_softmax_walk(const float* x, float* y, long long rows, long long classes) {
    for (long long r = blockIdx.x * (long long)blockDim.x + threadIdx.x; r < rows; r += (long long)gridDim.x * blockDim.x) {
        const float* p = x + r * classes;
        const float* end = p + classes;
        float largest = *p;
        for (; p != end; ++p) largest = fmaxf(largest, *p);
        float total = 0.0f;
        for (p = x + r * classes; p != end; ++p) total += expf(*p - largest);
        float shift = largest + logf(total);
        float* q = y + r * classes;
        for (p = x + r * classes; p < end; ++p, ++q) *q = *p - shift;
    }
}
extern "C" void f_log_softmax_walk(const float* a, const float* b, float* c, int n, int m) { log_softmax_walk<<<3, 8>>>(a, c, n, m); }

__global__ void at_least_once(const float* x, float* y, int rows, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float sum = 0.0f, count = 0.0f;
    int j = 0;
    do {
        const float v = x[r * n + j++];
        if (v < 0.0f) continue;
        sum += v;
    } while (j < n);
    int k = 3;
    do count += x[r + k]; while (--k > 0);
    y[2 * r] = sum;
    y[2 * r + 1] = count;
}
extern "C" void f_at_least_once(const float* a, const float* b, float* c, int n, int m) { at_least_once<<<(n + 127) / 128, 128>>>(a, c, n, m); }
