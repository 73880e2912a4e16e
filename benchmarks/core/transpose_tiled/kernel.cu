// Out-of-place transposition through a padded tile: both sides are read and written along their rows.
constexpr int TILE = 64;
constexpr int STRIPS = 4;  // rows of threads; each thread moves TILE / STRIPS elements

// WHOLE: no element of the tile lies outside, so that all loads can be under way at once.
template <bool WHOLE>
__device__ __forceinline__ void transpose_one(float (&tile)[TILE][TILE + 1], const float* __restrict__ in, float* __restrict__ out,
                                              int rows, int cols, int top, int left)
{
    const int x = threadIdx.x;
#pragma unroll
    for (int strip = 0; strip < TILE; strip += STRIPS) {
        const int y = strip + threadIdx.y;
        if (WHOLE || (top + y < rows && left + x < cols))
            tile[y][x] = in[(size_t)(top + y) * cols + left + x];
    }
    __syncthreads();
#pragma unroll
    for (int strip = 0; strip < TILE; strip += STRIPS) {
        const int y = strip + threadIdx.y;
        if (WHOLE || (left + y < cols && top + x < rows))
            out[(size_t)(left + y) * rows + top + x] = tile[x][y];
    }
}

__global__ void __launch_bounds__(TILE * STRIPS) transpose_tile(const float* __restrict__ in, float* __restrict__ out, int rows, int cols)
{
    __shared__ float tile[TILE][TILE + 1];  // the odd pitch keeps columns in different banks

    const int top = blockIdx.y * TILE;
    const int left = blockIdx.x * TILE;
    if (top + TILE <= rows && left + TILE <= cols)
        transpose_one<true>(tile, in, out, rows, cols, top, left);
    else
        transpose_one<false>(tile, in, out, rows, cols, top, left);
}

extern "C" void transpose_tiled(const float* in, float* out, int rows, int cols)
{
    const dim3 threads(TILE, STRIPS);
    const dim3 grid((cols + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
    transpose_tile<<<grid, threads>>>(in, out, rows, cols);
}
