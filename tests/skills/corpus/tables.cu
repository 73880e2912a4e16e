// small tables: of the file, and behind a pointer; shared arrays with columns in one bank
#define K 3
__device__ const float curve[8] = {0.5f, 1, 1.5f, 2, 2.5f, -3, 3.5f, 4};
__constant__ int order[2][4] = {{3, 1, 2, 0}, {0, 1, 3, 2}};
__global__ void look(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int code = (int)(fabsf(x[i]) * 4) & 7;
    out[i] = curve[code] * 2 + order[i & 1][code / 2] + curve[0];
}
__global__ void filter(const float* __restrict__ in, const float* __restrict__ weights, float* __restrict__ out, int h, int w) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = weights[0];
    for (int r = 0; r < K; ++r)
        for (int c = 0; c < K; ++c) {
            float v = y + r < h && x + c < w ? in[(y + r) * w + x + c] : 0.0f;
            s += v * weights[r * K + c];
            if (v > 1) s -= weights[(r + c) % K];
        }
    out[y * w + x] = s;
}
__global__ void turn(const float* in, float* out, int n) {
    __shared__ float tile[16][16], twice[2][16][8 * 2];
    int x = threadIdx.x;
    for (int r = threadIdx.y; r < 16; r += 4) { tile[r][x] = in[r * 16 + x]; twice[r & 1][x][r] = in[x + r]; }
    __syncthreads();
    for (int r = threadIdx.y; r < 16; r += 4) out[r * 16 + x] = tile[x][r] + twice[r & 1][x][r] + n;
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    look<<<(n + 31) / 32, 32>>>(a, c + 5000, n);
    dim3 block(8, 4), grid((m + 7) / 8, (n + 3) / 4);
    filter<<<grid, block>>>(c + 9000, c + 4000, c + 13000 - 200 * (n > 50), n < 60 ? n : 60, m < 50 ? m : 50);
    filter<<<dim3(1, 1), dim3(8, 4)>>>(c + 9000, c + 16383, c + 13000, 0, m);
    turn<<<1, dim3(16, 4)>>>(b, c + 6000, n);
}
