#define R 1
__global__ void blur(const float* in, const float* k, float* out, int h, int w) {
    int y = blockDim.x * blockIdx.x + threadIdx.x, x = blockDim.y * blockIdx.y + threadIdx.y;
    if (y >= h) return;
    if (x >= w) return;
    float s = 0.f;
    for (int dy = -R; dy <= R; ++dy)
        for (int dx = -R; dx <= R; ++dx) {
            int yy = y + dy, xx = x + dx;
            if (yy < 0 || yy >= h || xx < 0 || xx >= w) continue;
            s += in[yy * w + xx] * k[(dy + R) * (2 * R + 1) + dx + R];
        }
    out[y * w + x] = s;
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    blur<<<dim3((n + 15) / 16, (m + 3) / 4), dim3(16, 4)>>>(a, b, c, n, m);
}
