// Inclusive prefix sum of integers: every element is read once and written once; tiles look back at earlier tiles.
#include <cuda_runtime.h>

#define N_THREADS 512
#define N_WARPS (N_THREADS / 32)
#define N_ROWS 8
#define WARP_ITEMS (N_ROWS * 128)
#define TILE_ITEMS (N_WARPS * WARP_ITEMS)
#define LOOK 2
#define ALL_LANES 0xffffffffu

// A word of the work space: upper half 0 (nothing yet), 1 (sum of the tile) or 2 (sum of all up to the tile's end);
// lower half the value.
typedef unsigned long long word_t;

__device__ __forceinline__ word_t load_word(const word_t *p)
{
    word_t v;
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void store_word(word_t *p, unsigned state, unsigned value)
{
    word_t v = ((word_t)state << 32) | value;
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory");
}

__global__ void clear_words(word_t *words, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        words[i] = 0;
}

// Sum of all tiles before `tile` (> 0); by one whole warp.
__device__ __forceinline__ unsigned sum_before_tile(const word_t *words, int tile, int lane)
{
    unsigned before = 0;
    int newest = tile - 1;
    bool found = false;

    while (!found) {
        word_t word[LOOK];
#pragma unroll
        for (int k = 0; k < LOOK; k++) {
            int index = newest - k * 32 - lane;
            word[k] = (word_t)2 << 32;
            if (index >= 0)
                word[k] = load_word(words + index);
        }
#pragma unroll
        for (int k = 0; k < LOOK; k++) {
            if (!found) {
                int index = newest - k * 32 - lane;
                unsigned prefixes, needed;
                while (true) {
                    unsigned state = (unsigned)(word[k] >> 32);
                    unsigned valids = __ballot_sync(ALL_LANES, state != 0u);
                    prefixes = __ballot_sync(ALL_LANES, state == 2u);
                    // The lanes up to the nearest tile whose whole prefix is known.
                    needed = prefixes != 0u ? (prefixes ^ (prefixes - 1u)) : ALL_LANES;
                    if ((valids & needed) == needed)
                        break;
                    if (state == 0u)
                        word[k] = load_word(words + index);
                }
                unsigned part = ((needed >> lane) & 1u) != 0u ? (unsigned)word[k] : 0u;
                before += __reduce_add_sync(ALL_LANES, part);
                found = prefixes != 0u;
            }
        }
        newest -= 32 * LOOK;
    }
    return before;
}

// With one tile neither `ticket` nor `words` is used.
__global__ void __launch_bounds__(N_THREADS, 2)
scan_tiles(const int *in, int *out, unsigned *ticket, word_t *words, int n, int tiles, int in_aligned, int out_aligned)
{
    __shared__ unsigned warp_sums[N_WARPS];
    __shared__ int shared_tile;
    __shared__ unsigned shared_before;

    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;

    if (threadIdx.x == 0)
        shared_tile = tiles > 1 ? (int)atomicAdd(ticket, 1u) : 0;
    __syncthreads();

    const int tile = shared_tile;
    const long long start = (long long)tile * TILE_ITEMS;
    const long long left = (long long)n - start;
    const bool whole = left >= TILE_ITEMS;
    const int count = whole ? TILE_ITEMS : (int)left;
    const int first = warp * WARP_ITEMS + lane * 4;
    const int *source = in + start;
    int *target = out + start;

    unsigned item[N_ROWS][4];
    if (whole && in_aligned) {
#pragma unroll
        for (int r = 0; r < N_ROWS; r++) {
            int4 v = __ldcs(reinterpret_cast<const int4 *>(source + first + r * 128));
            item[r][0] = (unsigned)v.x;
            item[r][1] = (unsigned)v.y;
            item[r][2] = (unsigned)v.z;
            item[r][3] = (unsigned)v.w;
        }
    } else {
#pragma unroll
        for (int r = 0; r < N_ROWS; r++) {
#pragma unroll
            for (int k = 0; k < 4; k++) {
                int i = first + r * 128 + k;
                item[r][k] = i < count ? (unsigned)source[i] : 0u;
            }
        }
    }

    // The sum of the tile first: others wait for it.
    unsigned thread_sum = 0;
#pragma unroll
    for (int r = 0; r < N_ROWS; r++) {
        item[r][1] += item[r][0];
        item[r][2] += item[r][1];
        item[r][3] += item[r][2];
        thread_sum += item[r][3];
    }
    const unsigned warp_sum = __reduce_add_sync(ALL_LANES, thread_sum);
    if (lane == 0)
        warp_sums[warp] = warp_sum;
    __syncthreads();

    const unsigned other_sum = lane < N_WARPS ? warp_sums[lane] : 0u;
    const unsigned warps_before = __reduce_add_sync(ALL_LANES, lane < warp ? other_sum : 0u);
    unsigned tile_sum = 0;
    if (warp == 0 && tiles > 1) {
        tile_sum = __reduce_add_sync(ALL_LANES, other_sum);
        if (lane == 0)
            store_word(words + tile, tile == 0 ? 2u : 1u, tile_sum);
    }

    // Each row of 128 elements across the lanes, the rows side by side.
    unsigned running[N_ROWS];
#pragma unroll
    for (int r = 0; r < N_ROWS; r++)
        running[r] = item[r][3];
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
#pragma unroll
        for (int r = 0; r < N_ROWS; r++) {
            unsigned below = __shfl_up_sync(ALL_LANES, running[r], step);
            if (lane >= step)
                running[r] += below;
        }
    }
    unsigned rows_before = warps_before;
#pragma unroll
    for (int r = 0; r < N_ROWS; r++) {
        unsigned row_sum = __shfl_sync(ALL_LANES, running[r], 31);
        unsigned before = running[r] - item[r][3] + rows_before;
#pragma unroll
        for (int k = 0; k < 4; k++)
            item[r][k] += before;
        rows_before += row_sum;
    }

    if (warp == 0) {
        unsigned before = 0;
        if (tile > 0) {
            before = sum_before_tile(words, tile, lane);
            if (lane == 0)
                store_word(words + tile, 2u, before + tile_sum);
        }
        if (lane == 0)
            shared_before = before;
    }
    __syncthreads();

    const unsigned before = shared_before;
    if (whole && out_aligned) {
#pragma unroll
        for (int r = 0; r < N_ROWS; r++) {
            int4 v;
            v.x = (int)(item[r][0] + before);
            v.y = (int)(item[r][1] + before);
            v.z = (int)(item[r][2] + before);
            v.w = (int)(item[r][3] + before);
            __stcs(reinterpret_cast<int4 *>(target + first + r * 128), v);
        }
    } else {
#pragma unroll
        for (int r = 0; r < N_ROWS; r++) {
#pragma unroll
            for (int k = 0; k < 4; k++) {
                int i = first + r * 128 + k;
                if (i < count)
                    target[i] = (int)(item[r][k] + before);
            }
        }
    }
}

// For arrays that overlap: one block, without scratch, in the direction in which nothing is overwritten unread.
__global__ void __launch_bounds__(1024) scan_overlapping(const int *in, int *out, int n, int backward)
{
    __shared__ unsigned warp_sums[32];
    const int lane = threadIdx.x & 31;
    const int warp = threadIdx.x >> 5;
    const int stretches = (n - 1) / 1024 + 1;
    unsigned carry = 0;

    if (backward) {
        unsigned sum = 0;
        for (long long i = threadIdx.x; i < n; i += 1024)
            sum += (unsigned)in[i];
        sum = __reduce_add_sync(ALL_LANES, sum);
        if (lane == 0)
            warp_sums[warp] = sum;
        __syncthreads();
        carry = __reduce_add_sync(ALL_LANES, warp_sums[lane]);
        __syncthreads();
    }
    for (int s = 0; s < stretches; s++) {
        const int stretch = backward ? stretches - 1 - s : s;
        const long long i = (long long)stretch * 1024 + threadIdx.x;
        unsigned value = i < n ? (unsigned)in[i] : 0u;
        for (int step = 1; step < 32; step *= 2) {
            unsigned below = __shfl_up_sync(ALL_LANES, value, step);
            if (lane >= step)
                value += below;
        }
        if (lane == 31)
            warp_sums[warp] = value;
        __syncthreads();
        const unsigned other = warp_sums[lane];
        const unsigned total = __reduce_add_sync(ALL_LANES, other);
        value += __reduce_add_sync(ALL_LANES, lane < warp ? other : 0u);
        if (backward)
            carry -= total;
        if (i < n)
            out[i] = (int)(value + carry);
        if (!backward)
            carry += total;
        __syncthreads();
    }
}

static bool ranges_overlap(size_t a, size_t a_bytes, size_t b, size_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

extern "C" void prefix_sum(const int *in, int *out, int *sums, int n)
{
    if (n <= 0)
        return;
    const size_t from = (size_t)in;
    const size_t to = (size_t)out;
    const size_t scratch = (size_t)sums;
    const size_t bytes = (size_t)n * sizeof(int);
    const int in_aligned = from % 16 == 0 ? 1 : 0;
    const int out_aligned = to % 16 == 0 ? 1 : 0;
    const int tiles = (n - 1) / TILE_ITEMS + 1;

    if (tiles == 1) {
        scan_tiles<<<1, N_THREADS>>>(in, out, (unsigned *)0, (word_t *)0, n, 1, in_aligned, out_aligned);
        return;
    }

    const size_t scratch_bytes = ((size_t)(n - 1) / 512 + 1) * sizeof(int);
    if ((from != to && ranges_overlap(from, bytes, to, bytes)) || ranges_overlap(scratch, scratch_bytes, from, bytes)
        || ranges_overlap(scratch, scratch_bytes, to, bytes)) {
        scan_overlapping<<<1, 1024>>>(in, out, n, to > from ? 1 : 0);
        return;
    }

    // One word for the ticket, then one a tile.
    word_t *words = (word_t *)((scratch + 7) & ~(size_t)7);
    const int count = tiles + 1;
    clear_words<<<(count + 255) / 256, 256>>>(words, count);
    scan_tiles<<<tiles, N_THREADS>>>(in, out, (unsigned *)words, words + 1, n, tiles, in_aligned, out_aligned);
}
