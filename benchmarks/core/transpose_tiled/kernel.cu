// Out-of-place transposition through a padded tile: both sides are read and written along their rows.
constexpr int TILE = 64;
constexpr int STRIPS = 4;  // rows of threads; each thread moves TILE / STRIPS elements

__global__ void __launch_bounds__(TILE * STRIPS) transpose_tile(const float* __restrict__ in, float* __restrict__ out, int rows, int cols)
{
    __shared__ float tile[TILE][TILE + 1];  // the odd pitch keeps columns in different banks

    const int col = blockIdx.x * TILE + threadIdx.x;
    const int top = blockIdx.y * TILE;
#pragma unroll
    for (int strip = 0; strip < TILE; strip += STRIPS) {
        const int r = strip + threadIdx.y;
        if (top + r < rows && col < cols)
            tile[r][threadIdx.x] = in[(size_t)(top + r) * cols + col];
    }
    __syncthreads();

    const int out_col = top + threadIdx.x;
    const int out_top = blockIdx.x * TILE;
#pragma unroll
    for (int strip = 0; strip < TILE; strip += STRIPS) {
        const int r = strip + threadIdx.y;
        if (out_top + r < cols && out_col < rows)
            out[(size_t)(out_top + r) * rows + out_col] = tile[threadIdx.x][r];
    }
}

extern "C" void transpose_tiled(const float* in, float* out, int rows, int cols)
{
    const dim3 threads(TILE, STRIPS);
    const dim3 grid((cols + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
    transpose_tile<<<grid, threads>>>(in, out, rows, cols);
}
