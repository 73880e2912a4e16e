#include <cuda_runtime.h>
#include <math.h>

// Euclidean distance of every point of a to every point of b.
__global__ void distances(const float *a, const float *b, float *dist, int n, int m, int dim)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= m) return;

    dist[i * m + j] = 0;
    for (int d = 0; d < dim; d++)
        dist[i * m + j] += pow(a[i * dim + d] - b[j * dim + d], 2);
    dist[i * m + j] = sqrt(dist[i * m + j]);
}

extern "C" void pairwise_distance(const float *a, const float *b, float *dist, int n, int m, int dim)
{
    dim3 threads(16, 16);
    dim3 blocks((n + 15) / 16, (m + 15) / 16);
    distances<<<blocks, threads>>>(a, b, dist, n, m, dim);
}
