#define TILE 16
#define THREADS 64

__global__ void block_softmax(const float* x, float* y, int cols) {
    __shared__ float part[THREADS];
    const int t = threadIdx.x;
    const float* row = x + blockIdx.x * cols;
    float top = -INFINITY;
    for (int j = t; j < cols; j += blockDim.x) top = fmaxf(top, row[j]);
    part[t] = top;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s) part[t] = fmaxf(part[t], part[t + s]);
        __syncthreads();
    }
    top = part[0];
    __syncthreads();
    float sum = 0.0f;
    for (int j = t; j < cols; j += blockDim.x) sum += expf(row[j] - top);
    part[t] = sum;
    __syncthreads();
    for (int s = THREADS / 2; s > 0; s /= 2) {
        if (t < s) part[t] += part[t + s];
        __syncthreads();
    }
    for (int j = t; j < cols; j += blockDim.x) y[blockIdx.x * cols + j] = expf(row[j] - top) / part[0];
}
extern "C" void f_block_softmax(const float* a, const float* b, float* c, int n, int m) { block_softmax<<<n, THREADS>>>(a, c, m); }

__device__ float add_lanes(float v) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}
__global__ void warp_rows(const float* x, float* y, int rows, int cols) {
    const int lane = threadIdx.x, row = blockIdx.x * 4 + threadIdx.y;
    if (row >= rows) return;
    float sum = 0.f;
    for (int c = lane; c < cols; c += 32) sum += x[row * cols + c];
    sum = add_lanes(sum);
    for (int c = lane; c < cols; c += 32) y[row * cols + c] = x[row * cols + c] - sum;
}
extern "C" void f_warp_rows(const float* a, const float* b, float* c, int n, int m) { warp_rows<<<(n + 3) / 4, dim3(32, 4)>>>(a, c, n, m); }

__global__ void two_levels(const float* x, float* y, int cols) {
    __shared__ float warps[THREADS / 32];
    float v = 0.0f;
    for (int c = threadIdx.x; c < cols; c += THREADS) v += x[blockIdx.x * cols + c] * 0.5f;
    for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
    if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < THREADS / 32 ? warps[threadIdx.x] : 0.0f;
        for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
    }
    if (threadIdx.x == 0) y[blockIdx.x] = v;
}
extern "C" void f_two_levels(const float* a, const float* b, float* c, int n, int m) { two_levels<<<n, THREADS>>>(a, c, m); }

__global__ void tile_transpose(const float* in, float* out, int rows, int cols) {
    __shared__ float tile[TILE][TILE + 1];
    const int col = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    if (row < rows && col < cols) tile[threadIdx.y][threadIdx.x] = in[row * cols + col];
    __syncthreads();
    const int out_col = blockIdx.y * TILE + threadIdx.x, out_row = blockIdx.x * TILE + threadIdx.y;
    if (out_row < cols && out_col < rows) out[out_row * rows + out_col] = tile[threadIdx.x][threadIdx.y];
}
extern "C" void f_tile_transpose(const float* a, const float* b, float* c, int n, int m) {
    tile_transpose<<<dim3((m + TILE - 1) / TILE, (n + TILE - 1) / TILE), dim3(TILE, TILE)>>>(a, c, n, m);
}

__global__ void tiled_product(const float* a, const float* b, float* c, int n, int m) {
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    const int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int t = 0; t < (m + TILE - 1) / TILE; ++t) {
        as[threadIdx.y][threadIdx.x] = row < n && t * TILE + threadIdx.x < m ? a[row * m + t * TILE + threadIdx.x] : 0.0f;
        bs[threadIdx.y][threadIdx.x] = t * TILE + threadIdx.y < m && col < n ? b[(t * TILE + threadIdx.y) * n + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
        __syncthreads();
    }
    if (row < n && col < n) c[row * n + col] = sum;
}
extern "C" void f_tiled_product(const float* a, const float* b, float* c, int n, int m) {
    tiled_product<<<dim3((n + TILE - 1) / TILE, (n + TILE - 1) / TILE), dim3(TILE, TILE)>>>(a, b, c, n, m);
}

__global__ void shared_atomics(const float* x, float* y, int cols) {
    __shared__ float sum, square;
    if (threadIdx.x == 0) { sum = 0.0f; square = 0.0f; }
    __syncthreads();
    float s = 0.0f, q = 0.0f;
    for (int j = threadIdx.x; j < cols; j += blockDim.x) { float v = x[blockIdx.x * cols + j]; s += v; q += v * v; }
    atomicAdd(&sum, s);
    atomicAdd(&square, q);
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = square - sum / cols;
}
extern "C" void f_shared_atomics(const float* a, const float* b, float* c, int n, int m) { shared_atomics<<<n, 32>>>(a, c, m); }

__global__ void single_elements(const float* x, float* y) {
    __shared__ float part[THREADS];
    part[threadIdx.x] = x[blockIdx.x * THREADS + threadIdx.x];
    __syncthreads();
    for (int s = 1; s < THREADS; s *= 2) {
        const int at = 2 * s * threadIdx.x;
        if (at < THREADS) part[at] += part[at + s];
        __syncthreads();
    }
    if (!threadIdx.x) y[blockIdx.x] = part[0];
}
extern "C" void f_single_elements(const float* a, const float* b, float* c, int n, int m) { single_elements<<<n, THREADS>>>(a, c); }

__global__ void reversed_blocks(const float* x, float* y, int n) {
    __shared__ float kept[THREADS];
    const int i = blockIdx.x * THREADS + threadIdx.x;
    kept[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n) y[i] = kept[THREADS - 1 - threadIdx.x];
}
extern "C" void f_reversed_blocks(const float* a, const float* b, float* c, int n, int m) { reversed_blocks<<<(n + THREADS - 1) / THREADS, THREADS>>>(a, c, n); }

__global__ void one_block(const float* x, float* y, int n) {
    __shared__ float s[THREADS];
    float v = 0.0f;
    for (int i = threadIdx.x; i < n; i += THREADS) v += x[i];
    s[threadIdx.x] = v;
    __syncthreads();
    for (int h = THREADS / 2; h; h >>= 1) {
        if (threadIdx.x < h) s[threadIdx.x] += s[threadIdx.x + h];
        __syncthreads();
    }
    if (threadIdx.x == 0) *y = s[0];
}
extern "C" void f_one_block(const float* a, const float* b, float* c, int n, int m) { one_block<<<1, THREADS>>>(a, c, n); }
