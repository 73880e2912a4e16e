__device__ float square(float v) { return v * v; }
__global__ void rows(const float* x, const float* gain, float* out, int n, int m) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < n) {
        float mean = 0;
        for (int k = 0; k < m; ++k) mean += x[r * m + k];
        mean /= m;
        float var = 0.0f, top = -1e30f;
        for (int k = 1; k < m - 1; k++) { var += powf(x[r * m + k] - mean, 2.0f); top = fmaxf(top, x[r * m + k]); }
        float inv = 1.0 / sqrt(var / m + 1e-5);
        for (int k = 0; k < m; ++k) {
            if (k == 3) continue;
            out[r * m + k] = square(x[r * m + k] - mean) * inv * gain[k] * expf(-fabsf(top)) + gain[r];
        }
        for (int k = 0; k < m; ++k) out[r * m] += x[r * m + k] * gain[r];
    }
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) { rows<<<(n + 31) / 32, 32>>>(a, b, c, n, m); }
