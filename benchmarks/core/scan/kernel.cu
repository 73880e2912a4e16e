// Inclusive prefix sum of integers: scan blocks, scan the block sums, add them.
#include <cuda_runtime.h>

#define N_THREADS 512

__global__ void scan_blocks(const int *in, int *out, int *sums, int n)
{
    __shared__ int buffer[2][N_THREADS];
    int i = blockIdx.x * N_THREADS + threadIdx.x;
    int from = 0;

    buffer[0][threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    for (int offset = 1; offset < N_THREADS; offset *= 2) {
        int value = buffer[from][threadIdx.x];
        if (threadIdx.x >= offset)
            value += buffer[from][threadIdx.x - offset];
        buffer[1 - from][threadIdx.x] = value;
        from = 1 - from;
        __syncthreads();
    }
    if (i < n)
        out[i] = buffer[from][threadIdx.x];
    if (threadIdx.x == N_THREADS - 1)
        sums[blockIdx.x] = buffer[from][N_THREADS - 1];
}

__global__ void scan_sums(int *sums, int blocks)
{
    int running = 0;
    for (int b = 0; b < blocks; b++) {
        int sum = sums[b];
        sums[b] = running;
        running += sum;
    }
}

__global__ void add_sums(int *out, const int *sums, int n)
{
    int i = blockIdx.x * N_THREADS + threadIdx.x;
    if (i < n)
        out[i] += sums[blockIdx.x];
}

extern "C" void prefix_sum(const int *in, int *out, int *sums, int n)
{
    int blocks = (n + N_THREADS - 1) / N_THREADS;
    scan_blocks<<<blocks, N_THREADS>>>(in, out, sums, n);
    scan_sums<<<1, 1>>>(sums, blocks);
    add_sums<<<blocks, N_THREADS>>>(out, sums, n);
}
