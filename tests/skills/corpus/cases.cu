// Constants added by cases: what a step does is chosen by a small number. All results are integers.
__global__ void walks(const float* a, float* c, int n, int steps) {
    int w = blockIdx.x * blockDim.x + threadIdx.x;
    if (w >= n) return;
    unsigned state = (unsigned)((a[w] + 2) * 1000);
    int x = 3, y = -2;
    for (int s = 0; s < steps; s++) {
        state = state * 1664525u + 1013904223u;
        switch (state >> 16 & 3) {
        case 0: x += 1; break;
        case 1: x -= 1; break;
        case 2: y += 2; break;
        default: y -= 1; break;
        }
    }
    c[w] = (float)(x + 1000 * y);
}
__global__ void votes(const float* a, float* c, int n, int m) {
    int w = blockIdx.x * blockDim.x + threadIdx.x;
    if (w >= n) return;
    int none = 0, few = 0, many = 0;
    for (int s = 0; s < m; s++) {
        unsigned kind = (unsigned)((a[w * m + s] + 2) * 1000) % 5u;
        if (kind == 0) none++;
        else if (kind < 3) few += 2;
        else many += kind == 3 ? 1 : 7;
    }
    c[w] = (float)(none + 64 * few + 4096 * many);
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    walks<<<(n + 63) / 64, 64>>>(a, c, n, 3 * m);
    votes<<<(n + 31) / 32, 32>>>(b, c + 8000, n, m);
}
