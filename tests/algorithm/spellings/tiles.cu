// Tiles in shared memory that each thread fills in several steps.

constexpr int SIDE = 16;
constexpr int STEP = 4;

__global__ void transpose_strips(const float* in, float* out, int rows, int cols) {
    __shared__ float tile[SIDE][SIDE + 1];
    int x = blockIdx.x * SIDE + threadIdx.x, y = blockIdx.y * SIDE + threadIdx.y;
    for (int j = 0; j < SIDE; j += STEP)
        if (x < cols && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * cols + x];
    __syncthreads();
    x = blockIdx.y * SIDE + threadIdx.x;
    y = blockIdx.x * SIDE + threadIdx.y;
    for (int j = 0; j < SIDE; j += STEP)
        if (x < rows && y + j < cols) out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}
extern "C" void f_transpose_strips(const float* a, const float* b, float* c, int n, int m) { transpose_strips<<<dim3((m + SIDE - 1) / SIDE, (n + SIDE - 1) / SIDE), dim3(SIDE, STEP)>>>(a, c, n, m); }

__global__ void product_strips(const float* a, const float* b, float* c, int n, int m) {
    __shared__ float left[SIDE][SIDE], right[SIDE][SIDE];
    const int row = blockIdx.y * SIDE + threadIdx.y, col = blockIdx.x * SIDE + threadIdx.x;
    float sums[SIDE / STEP] = {};
    for (int t = 0; t < m; t += SIDE) {
        for (int j = 0; j < SIDE; j += STEP) {
            left[threadIdx.y + j][threadIdx.x] = row + j < n && t + threadIdx.x < m ? a[(row + j) * m + t + threadIdx.x] : 0.0f;
            right[threadIdx.y + j][threadIdx.x] = t + threadIdx.y + j < m && col < n ? b[(t + threadIdx.y + j) * n + col] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < SIDE; ++k)
            for (int u = 0; u < SIDE / STEP; ++u) sums[u] += left[threadIdx.y + STEP * u][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    for (int u = 0; u < SIDE / STEP; ++u)
        if (row + STEP * u < n && col < n) c[(row + STEP * u) * n + col] = sums[u];
}
extern "C" void f_product_strips(const float* a, const float* b, float* c, int n, int m) { product_strips<<<dim3((n + SIDE - 1) / SIDE, (n + SIDE - 1) / SIDE), dim3(SIDE, STEP)>>>(a, b, c, n, m); }

__global__ void flat_tile(const float* x, float* y, int n) {
    __shared__ float kept[128];
    for (int k = 0; k < 4; ++k) {
        const int i = blockIdx.x * 128 + k * 32 + threadIdx.x;
        kept[k * 32 + threadIdx.x] = i < n ? x[i] * 2.0f : 0.0f;
    }
    __syncthreads();
    for (int k = 0; k < 4; ++k) {
        const int i = blockIdx.x * 128 + threadIdx.x * 4 + k;
        if (i < n) y[i] = kept[threadIdx.x * 4 + k] + 1.0f;
    }
}
extern "C" void f_flat_tile(const float* a, const float* b, float* c, int n, int m) { flat_tile<<<(n + 127) / 128, 32>>>(a, c, n); }
