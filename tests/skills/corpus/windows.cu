// tests in loops: of the counter, of flags, of both
#define PAD 2
#define TAPS (2 * PAD + 1)
__global__ void windows(const float* in, const float* w, float* out, int h, int width, int mode) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= width || y >= h) return;
    float s = 0.0f;
    for (int ky = 0; ky < TAPS; ky++) {
        int yy = y + ky - PAD;
        if (yy < 0 || yy >= h) continue;
        for (int kx = 0; kx < TAPS; kx++) {
            int xx = x - kx + PAD;  // mirrored
            if (!(mode & 1) && (xx < 0 || width <= xx)) continue;
            if (xx < 0 || width <= xx) continue;
            s += in[yy * width + xx] * w[ky * TAPS + kx];
        }
    }
    for (int j = 0; j < width; ++j)
        if (j <= x && in[y * width + j] > 0 && y - j < 9) s += in[y * width + j];
    for (int j = -3; j <= 3; ++j) { if (j + x >= 0) { if (x + j < width) s += in[y * width + x + j] * 0.25f; } }
    for (int j = 0; j < width; ++j) {
        float v = in[y * width + j];
        if (mode == 1) v = -v;
        else if (mode > 1) { float half = 0.5f; v *= half; }
        s += mode > 1 ? v : 2.0f * v;
        if (j == 5) continue;
        s *= mode == 1 ? 1 : 0.5f;
    }
    if (y > 1)
        for (int j = 0; j < width; ++j) if (mode > 0) if (j > 2) s += 1.0f;
    else s -= 1.0f;
    for (unsigned j = 0; j < width; ++j) { unsigned t = x + j - 3; if (t < width) s += in[y * width + t]; }
    for (int j = 0; j < width; j += 2) if (j > x) s += 0.125f;
    #pragma unroll 2
    for (int j = -PAD; j <= PAD; ++j) {
        int q = x + j;
        float v = q >= 0 && q < width ? in[y * width + q] : 0.5f;  // padded
        if (j == 1) continue;
        if (j <= y) s += v; else { s -= v * 0.5f; }
    }
    out[y * width + x] = s;
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    dim3 block(16, 4);
    dim3 grid((m + 15) / 16, (n + 3) / 4);
    for (int mode = 0; mode < 3; ++mode) windows<<<grid, block>>>(a, b, c + 4000 + mode * n * m, n, m, mode);
}
