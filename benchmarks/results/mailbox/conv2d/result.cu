// 2-D convolution of a grey image with a small odd filter, zero padding at the border.
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>

constexpr int WARPS = 8;
constexpr int THREADS = 32 * WARPS;
constexpr int LANE_COLS = 4;                       // outputs of a thread along a row
constexpr int LANE_ROWS = 7;                       // outputs of a thread down a column
constexpr int TILE_W = 2 * 32 * LANE_COLS;         // two warps side by side
constexpr int TILE_H = (WARPS / 2) * LANE_ROWS;    // four warps below each other
constexpr int PITCH = TILE_W + 8;                  // four columns of halo at either side keep rows aligned

// One output with every bound clipped: the general path, in the order of the plain definition.
__device__ __forceinline__ float one_point(const float* image, const float* filter, long long width, long long height,
                                           long long radius, long long row, long long col)
{
    const long long size = 2 * radius + 1;
    const long long r0 = row - radius < 0 ? 0 : row - radius;
    const long long r1 = row + radius > height - 1 ? height - 1 : row + radius;
    const long long c0 = col - radius < 0 ? 0 : col - radius;
    const long long c1 = col + radius > width - 1 ? width - 1 : col + radius;
    float acc = 0.0f;
#pragma unroll 1
    for (long long r = r0; r <= r1; ++r) {
        const long long f = (r - row + radius) * size + radius - col;
        const long long p = r * width;
#pragma unroll 1
        for (long long c = c0; c <= c1; ++c)
            acc = fmaf(filter[f + c], image[p + c], acc);
    }
    return acc;
}

// Any radius, any overlap of the arrays.
__global__ void conv2d(const float* image, const float* filter, float* result, int width, int height, int radius)
{
    const long long col = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= width) return;
    const long long pace = (long long)gridDim.y * blockDim.y;
    for (long long row = (long long)blockIdx.y * blockDim.y + threadIdx.y; row < height; row += pace)
        result[row * width + col] = one_point(image, filter, width, height, radius, row, col);
}

__device__ __forceinline__ void copy16(unsigned dst, const float* src)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(dst), "l"(src) : "memory");
}

__device__ __forceinline__ void copy16_or_zero(unsigned dst, const float* src, int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}

__device__ __forceinline__ void copy4_or_zero(unsigned dst, const float* src, int bytes)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}

// Small radius (at most 3), result apart from image and filter. VEC: rows of image and result start at 16 bytes.
template <int R, bool VEC>
__global__ void __launch_bounds__(THREADS, R <= 2 ? 3 : 2)
conv_tile(const float* __restrict__ image, const float* __restrict__ filter, float* __restrict__ result, int width,
          int height, int tilesX)
{
    constexpr int K = 2 * R + 1;
    constexpr int IN_H = TILE_H + 2 * R;
    __shared__ __align__(16) float tile[IN_H][PITCH];

    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
    const int ty = (int)blockIdx.x / tilesX;
    const int tx = (int)blockIdx.x - ty * tilesX;
    const long long x0 = (long long)tx * TILE_W;
    const long long y0 = (long long)ty * TILE_H;
    const bool inside = x0 >= 4 && x0 + TILE_W + 4 <= width && y0 >= R && y0 + TILE_H + R <= height;
    const unsigned base = (unsigned)__cvta_generic_to_shared(&tile[0][0]);

    if (VEC && inside) {
        const float* src = image + ((y0 - R + warp) * width + x0 - 4 + 4 * lane);
        unsigned dst = base + (unsigned)warp * (PITCH * 4) + (unsigned)lane * 16;
        const long long pace = (long long)WARPS * width;
#pragma unroll
        for (int r = 0; r < IN_H; r += WARPS) {
            if (r + WARPS <= IN_H || r + warp < IN_H) {
                copy16(dst, src);
                copy16(dst + 512, src + 128);
                if (lane < 2) copy16(dst + 1024, src + 256);
            }
            src += pace;
            dst += WARPS * PITCH * 4;
        }
    } else {
        for (int r = warp; r < IN_H; r += WARPS) {
            const long long row = y0 - R + r;
            const bool rowIn = row >= 0 && row < height;
            const unsigned line = base + (unsigned)r * (PITCH * 4);
            if (VEC) {
                for (int q = lane; q < PITCH / 4; q += 32) {
                    const long long c = x0 - 4 + 4 * q;
                    const bool in = rowIn && c >= 0 && c < width;
                    copy16_or_zero(line + 16u * (unsigned)q, in ? image + (row * width + c) : image, in ? 16 : 0);
                }
            } else {
                for (int q = lane; q < PITCH; q += 32) {
                    const long long c = x0 - 4 + q;
                    const bool in = rowIn && c >= 0 && c < width;
                    copy4_or_zero(line + 4u * (unsigned)q, in ? image + (row * width + c) : image, in ? 4 : 0);
                }
            }
        }
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");

    // While the tile is under way: the filter goes to registers.
    float f[K][K];
#pragma unroll
    for (int fr = 0; fr < K; ++fr) {
#pragma unroll
        for (int fc = 0; fc < K; ++fc) f[fr][fc] = __ldg(filter + fr * K + fc);
    }

    const int half = warp & 1;
    const int group = warp >> 1;
    const long long col = x0 + half * 128 + 4 * lane;
    const long long row0 = y0 + group * LANE_ROWS;

    asm volatile("cp.async.wait_all;\n" ::: "memory");
    __syncthreads();

    // Zeros around the image are neutral only for a finite filter.
    if (!inside) {
        float finite = 0.0f;                       // becomes NaN where an element is not finite
#pragma unroll
        for (int fr = 0; fr < K; ++fr) {
#pragma unroll
            for (int fc = 0; fc < K; ++fc) finite = fmaf(f[fr][fc], 0.0f, finite);
        }
        if (!(finite == 0.0f)) {
#pragma unroll 1
            for (int o = 0; o < LANE_ROWS; ++o) {
#pragma unroll 1
                for (int j = 0; j < LANE_COLS; ++j) {
                    const long long r = row0 + o;
                    const long long c = col + j;
                    if (r < height && c < width)
                        result[r * width + c] = one_point(image, filter, width, height, R, r, c);
                }
            }
            return;
        }
    }

    int rowsLeft = 0;                              // rows that this thread stores
    if (col < width && row0 < height)
        rowsLeft = height - row0 < LANE_ROWS ? (int)(height - row0) : LANE_ROWS;
    float* out = result + (row0 * width + col);

    const float* line = &tile[group * LANE_ROWS][half * 128 + 4 * lane];
    float acc[LANE_ROWS][LANE_COLS];
#pragma unroll
    for (int o = 0; o < LANE_ROWS; ++o) {
#pragma unroll
        for (int j = 0; j < LANE_COLS; ++j) acc[o][j] = 0.0f;
    }

#pragma unroll
    for (int i = 0; i < LANE_ROWS + 2 * R; ++i) {
        float w[12];
        if (R <= 2) {
            const float2 a = *reinterpret_cast<const float2*>(line + i * PITCH + 2);
            const float4 b = *reinterpret_cast<const float4*>(line + i * PITCH + 4);
            const float2 c = *reinterpret_cast<const float2*>(line + i * PITCH + 8);
            w[0] = 0.0f; w[1] = 0.0f; w[2] = a.x; w[3] = a.y;
            w[4] = b.x; w[5] = b.y; w[6] = b.z; w[7] = b.w;
            w[8] = c.x; w[9] = c.y; w[10] = 0.0f; w[11] = 0.0f;
        } else {
            const float4 a = *reinterpret_cast<const float4*>(line + i * PITCH);
            const float4 b = *reinterpret_cast<const float4*>(line + i * PITCH + 4);
            const float4 c = *reinterpret_cast<const float4*>(line + i * PITCH + 8);
            w[0] = a.x; w[1] = a.y; w[2] = a.z; w[3] = a.w;
            w[4] = b.x; w[5] = b.y; w[6] = b.z; w[7] = b.w;
            w[8] = c.x; w[9] = c.y; w[10] = c.z; w[11] = c.w;
        }
#pragma unroll
        for (int fc = 0; fc < K; ++fc) {
#pragma unroll
            for (int fr = 0; fr < K; ++fr) {
                if (i - fr >= 0 && i - fr < LANE_ROWS) {
#pragma unroll
                    for (int j = 0; j < LANE_COLS; ++j)
                        acc[i - fr][j] = fmaf(f[fr][fc], w[4 + j + fc - R], acc[i - fr][j]);
                }
            }
        }
        if (i >= 2 * R) {                          // output row i - 2R is complete
            const int o = i - 2 * R;
            if (o < rowsLeft) {
                if (VEC) {
                    __stcs(reinterpret_cast<float4*>(out), make_float4(acc[o][0], acc[o][1], acc[o][2], acc[o][3]));
                } else {
#pragma unroll
                    for (int j = 0; j < LANE_COLS; ++j)
                        if (col + j < width) out[j] = acc[o][j];
                }
            }
            out += width;
        }
    }
}

static bool meets(const void* a, size_t na, const void* b, size_t nb)
{
    const uintptr_t x = reinterpret_cast<uintptr_t>(a);
    const uintptr_t y = reinterpret_cast<uintptr_t>(b);
    return x < y + nb && y < x + na;
}

template <int R>
static void launch_tile(const float* image, const float* filter, float* result, int width, int height)
{
    const int tilesX = (width - 1) / TILE_W + 1;
    const int tilesY = (height - 1) / TILE_H + 1;
    const unsigned blocks = (unsigned)((long long)tilesX * tilesY);
    const uintptr_t address = reinterpret_cast<uintptr_t>(image) | reinterpret_cast<uintptr_t>(result);
    if ((address & 15) == 0 && width % 4 == 0) {
        cudaFuncSetAttribute(conv_tile<R, true>, cudaFuncAttributePreferredSharedMemoryCarveout,
                             cudaSharedmemCarveoutMaxShared);
        conv_tile<R, true><<<blocks, THREADS>>>(image, filter, result, width, height, tilesX);
    } else {
        conv_tile<R, false><<<blocks, THREADS>>>(image, filter, result, width, height, tilesX);
    }
}

extern "C" void convolve(const float* image, const float* filter, float* result, int width, int height, int radius)
{
    if (width <= 0 || height <= 0) return;

    if (radius >= 1 && radius <= 3) {
        const size_t pixels = (size_t)width * (size_t)height * sizeof(float);
        const size_t taps = (size_t)(2 * radius + 1) * (size_t)(2 * radius + 1) * sizeof(float);
        if (!meets(result, pixels, image, pixels) && !meets(result, pixels, filter, taps)) {
            if (radius == 1) launch_tile<1>(image, filter, result, width, height);
            else if (radius == 2) launch_tile<2>(image, filter, result, width, height);
            else launch_tile<3>(image, filter, result, width, height);
            return;
        }
    }

    const dim3 threads(16, 16);
    const int high = (height - 1) / 16 + 1;
    const dim3 blocks((unsigned)((width - 1) / 16 + 1), (unsigned)(high < 65535 ? high : 65535));
    conv2d<<<blocks, threads>>>(image, filter, result, width, height, radius);
}
