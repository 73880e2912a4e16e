#include <stdint.h>
typedef float real;
using word = uint32_t;

__global__ void gelu(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { float v = x[i]; y[i] = 0.5 * v * (1.0 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))); }
}
extern "C" void f_gelu(const float* a, const float* b, float* c, int n, int m) { gelu<<<(n + 255) / 256, 256>>>(a, c, n); }

template <typename T>
__global__ void adam(T* w, T* moment, const T* g, T lr, T b1, unsigned n) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        moment[i] = b1 * moment[i] + (1.0f - b1) * g[i];
        w[i] -= lr * moment[i];
    }
}
extern "C" void f_adam(const float* a, const float* b, float* c, int n, int m) { adam<float><<<2, 16>>>(c, c + 5000, a, 0.1f, 0.9f, n); }

__global__ void heat(const real* u, real* v, int h, int w, real a) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && x < w - 1 && y > 0 && y < h - 1)
        v[y * w + x] = u[y * w + x] + a * (u[(y - 1) * w + x] + u[(y + 1) * w + x] + u[y * w + x - 1] + u[y * w + x + 1] - 4.0f * u[y * w + x]);
}
extern "C" void f_heat(const float* a, const float* b, float* c, int n, int m) {
    dim3 t(16, 16), g((m + 15) / 16, (n + 15) / 16);
    heat<<<g, t>>>(a, c, n, m, 0.1f);
}

#define R 1
__global__ void window(const float* im, const float* k, float* o, int H, int W) {
    int c = blockDim.x * blockIdx.x + threadIdx.x, r = blockDim.y * blockIdx.y + threadIdx.y;
    if (r >= H) return;
    if (c >= W) return;
    float s = 0.f;
    for (int dy = -R; dy <= R; ++dy)
        for (int dx = -R; dx <= R; ++dx) {
            int yy = r + dy, xx = c + dx;
            if (yy < 0 || yy >= H || xx < 0 || xx >= W) continue;
            s += im[yy * W + xx] * k[(dy + R) * (2 * R + 1) + dx + R];
        }
    o[r * W + c] = s;
}
extern "C" void f_window(const float* a, const float* b, float* c, int n, int m) { window<<<dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(a, b, c, n, m); }

__global__ void unsigned_window(const float* im, float* o, int H, int W) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i >= H * W) return;
    int r = i / W, c = i % W;
    float s = 0.f;
    for (int d = -2; d <= 2; d += 2)
        if ((unsigned)(r + d) < (unsigned)H && (unsigned)(c - d) < W) s += im[(r + d) * W + c - d];
    o[i] = s;
}
extern "C" void f_unsigned_window(const float* a, const float* b, float* c, int n, int m) { unsigned_window<<<(n * m + 31) / 32, 32>>>(a, c, n, m); }

__global__ void unsigned_inside(const float* x, float* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i < n - 2u) y[i] = x[i] + 1.0f;
    else if (i < 64) y[i] = -x[i];
}
extern "C" void f_unsigned_inside(const float* a, const float* b, float* c, int n, int m) { unsigned_inside<<<2, 32>>>(a, c, (unsigned)n); }

__global__ void transposed(const float* a, float* b, int h, int w) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < w && y < h) b[x * h + y] = a[y * w + x];
}
extern "C" void f_transposed(const float* a, const float* b, float* c, int n, int m) { dim3 g((m + 15) / 16, (n + 15) / 16), k(16, 16); transposed<<<g, k>>>(a, c, n, m); }

__global__ void permute(float* o, const float* i, int A, int B, int C) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= A * B * C) return;
    int b = t % B, a = (t / B) % A, c = t / (A * B);
    o[t] = 2.0f * i[(a * B + b) * C + c];
}
extern "C" void f_permute(const float* a, const float* b, float* c, int n, int m) { permute<<<(n * m * 3 + 255) / 256, 256>>>(c, a, n, m, 3); }

__global__ void permute_total(float* o, const float* i, int A, int B, int total) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < total) o[t] = i[t] + i[(t / B) % A] + i[t / (A * B)];
}
extern "C" void f_permute_total(const float* a, const float* b, float* c, int n, int m) {
    int planes = 5, total = planes * n * m;
    permute_total<<<(total - 1) / 64 + 1, 64>>>(c, a, n, m, total);
}

__global__ void strided_rows(const float* a, float* c, int r, int n) {
    for (int i = blockIdx.x; i < r; i += gridDim.x)
        for (int j = threadIdx.x; j < n; j += blockDim.x) c[j * r + i] = a[i * n + j];
}
extern "C" void f_strided_rows(const float* a, const float* b, float* c, int n, int m) { strided_rows<<<5, 16>>>(a, c, n, m); }

__global__ void not_covered(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.f * x[i];
}
extern "C" void f_not_covered(const float* a, const float* b, float* c, int n, int m) { not_covered<<<n / 8 + 1, 6>>>(a, c, n); }

template <typename T, int BS>
__global__ void relu(const T* __restrict__ a, T* __restrict__ c, int n) {
    const int i = blockIdx.x * BS + threadIdx.x;
    if (i < n) c[i] = a[i] > T(0) ? a[i] : T(0);
}
extern "C" void f_relu(const float* a, const float* b, float* c, int n, int m) {
    constexpr int BS = 64;
    relu<float, BS><<<(n + BS - 1) / BS, BS>>>(a, c, n);
}

__device__ float clipped(float v, float low, float high) {
    if (v < low) return low;
    if (v > high) return high;
    return v;
}
__device__ void both(float v, float& up, float* down) { up = v + 1.0f; *down = v - 1.0f; }
__device__ inline int cdiv(int a, int b) { return (a + b - 1) / b; }
__global__ void helpers(const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float up, down;
    both(clipped(a[i], -1.0f, 1.0f), up, &down);
    c[2 * i] = up;
    c[2 * i + 1] = down * cdiv(i, 3);
}
extern "C" void f_helpers(const float* a, const float* b, float* c, int n, int m) { helpers<<<cdiv(n, 64), 64>>>(a, c, n); }

struct P { float x, y, z, w; };
__global__ void records(P* p, const float4* q, float dt, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        p[i].x += dt * p[i].w;
        P* own = &p[i];
        own->y = own->x * 2.0f;
        float4 v = q[i];
        v.x *= 2.0f;
        p[i].z = v.x + v.w;
    }
}
extern "C" void f_records(const float* a, const float* b, float* c, int n, int m) { records<<<(n + 255) / 256, 256>>>((P*)c, (const float4*)a, 0.5f, n); }

__global__ void local_arrays(const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float weights[3] = {0.25f, 0.5f, 0.25f};
    float window[3], acc[2] = {0};
    for (int k = 0; k < 3; ++k) window[k] = a[i + k];
    for (int k = 0; k < 3; ++k) { acc[0] += weights[k] * window[k]; acc[1] -= window[k]; }
    c[2 * i] = acc[0];
    c[2 * i + 1] = acc[1];
}
extern "C" void f_local_arrays(const float* a, const float* b, float* c, int n, int m) { local_arrays<<<(n + 63) / 64, 64>>>(a, c, n); }

__global__ void accumulators(const float* a, const float* b, float* c, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float acc[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    float4 lanes = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int k = 0; k < m; ++k) {
        for (int u = 0; u < 4; ++u) acc[u] += a[i * m + k] * b[k * 4 + u];
        lanes.y += b[k];
    }
    for (int u = 0; u < 4; ++u) c[i * 4 + u] = acc[u] + lanes.y;
}
extern "C" void f_accumulators(const float* a, const float* b, float* c, int n, int m) { accumulators<<<(n + 63) / 64, 64>>>(a, b, c, n, m); }

__global__ void hashed(word* c, const float* a, unsigned n, word seed) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    word h = i * 2654435761u ^ seed;
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    for (int k = 0; k < 5; ++k) h = h * 31u + k;
    word s = h;
    for (unsigned k = 0; k < n; ++k) s = s * 1664525u + 1013904223u;
    c[i] = s % 1000u + (h >> 3);
}
extern "C" void f_hashed(const float* a, const float* b, float* c, int n, int m) { hashed<<<(n + 63) / 64, 64>>>((uint32_t*)c, a, n, 77u); }

__global__ void bytes(const unsigned char* p, unsigned char* q, short* s, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned char r = p[3 * i], g = p[3 * i + 1], b = p[3 * i + 2];
    q[i] = (77 * r + 150 * g + 29 * b) >> 8;
    s[i] = (short)(r * 300) - (g << 4) + (b & 7) / 2 - (-r) % 5;
}
extern "C" void f_bytes(const float* a, const float* b, float* c, int n, int m) { bytes<<<(n + 63) / 64, 64>>>((const unsigned char*)a, (unsigned char*)c, (short*)(c + 5000), n); }

__global__ void truncated(const float* a, int* c, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int d = i - m;
    c[4 * i] = d / 3;
    c[4 * i + 1] = d % 3;
    c[4 * i + 2] = (2 * d + 1) / 2;
    c[4 * i + 3] = (int)(a[i] * 100.0f) / 7 + (d >> 1);
}
extern "C" void f_truncated(const float* a, const float* b, float* c, int n, int m) { truncated<<<(n + 63) / 64, 64>>>(a, (int*)c, n, m); }

__global__ void all_pairs(const float* x, const float* y, float* f, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float ax = 0.f, ay = 0.f, px = x[i], py = y[i];
    for (int j = 0; j < n; ++j) {
        float dx = x[j] - px, dy = y[j] - py;
        float r = 1.0f / sqrtf(dx * dx + dy * dy + 1e-4f);
        float w = y[j] * r * r * r;
        ax += w * dx;
        ay += w * dy;
    }
    f[2 * i] = ax;
    f[2 * i + 1] = ay;
}
extern "C" void f_all_pairs(const float* a, const float* b, float* c, int n, int m) { all_pairs<<<(n + 255) / 256, 256>>>(a, b, c, n); }

__global__ void only_first(const float* a, float* c, int n, int m) {
    int row = blockIdx.x;
    if (threadIdx.x == 0) {
        float s = 0.0f;
        for (int k = 0; k < m; k++) s += a[row * m + k];
        c[row] = s;
    }
}
extern "C" void f_only_first(const float* a, const float* b, float* c, int n, int m) { only_first<<<n, 32>>>(a, c, n, m); }

__global__ void switched(const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = a[i];
    switch (i % 4) {
    case 0: v += 1.0f; break;
    case 1:
    case 2: v *= 2.0f; break;
    default: v = -v;
    }
    c[i] = v;
}
extern "C" void f_switched(const float* a, const float* b, float* c, int n, int m) { switched<<<(n + 31) / 32, 32>>>(a, c, n); }

#define SWAP(p, q) { float kept = p; p = q; q = kept; }
__global__ void exchanged(float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) SWAP(c[2 * i], c[2 * i + 1]);
}
extern "C" void f_exchanged(const float* a, const float* b, float* c, int n, int m) { exchanged<<<(n + 31) / 32, 32>>>(c, n); }

__global__ void shadowed(const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = a[i];
    { float v = 2.0f; c[2 * i] = v; }
    for (int i = 0; i < 3; ++i) v += i;
    c[2 * i + 1] = v;
}
extern "C" void f_shadowed(const float* a, const float* b, float* c, int n, int m) { shadowed<<<(n + 31) / 32, 32>>>(a, c, n); }

__global__ void gathered(const int* index, const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[(index[i] & 255)] + a[index[i] >= 0 ? i : 0];
}
extern "C" void f_gathered(const float* a, const float* b, float* c, int n, int m) { gathered<<<(n + 31) / 32, 32>>>((const int*)b, a, c, n); }

__global__ void thread_walk(const float* a, float* c, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int at = i;
    float best = 0.0f;
    for (int s = 0; s < m; ++s) {
        best += a[at];
        at = a[at] > 0.0f ? at + 1 : (at * 7 + 3) % 64;
    }
    c[i] = best + at;
}
extern "C" void f_thread_walk(const float* a, const float* b, float* c, int n, int m) { thread_walk<<<(n + 31) / 32, 32>>>(a, c, n, m); }
