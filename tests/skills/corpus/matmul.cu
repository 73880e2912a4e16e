// threads stride along rows: swap, block shape; 2-D guards; launch bounds
__global__ void product(const float* a, const float* b, float* c, int n, int m) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    const int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < n && col < m) {
        c[row * m + col] = 0.0f;
        for (int k = 0; k < m; ++k) c[row * m + col] += a[row * m + k] * b[k * m + col];
    }
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    dim3 block(32, 8);
    dim3 grid((n + block.x - 1) / block.x, (m + block.y - 1) / block.y);
    product<<<grid, block>>>(a, b, c, n, m);
}
