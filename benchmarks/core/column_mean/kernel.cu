#include <cuda_runtime.h>

/* Mean of every column of a row-major matrix, one thread a column. */
__global__ void column_mean(const float *data, float *mean, int nrow, int ncol)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j < ncol) {
        mean[j] = 0.0;
        for (int i = 0; i < nrow; i++)
            mean[j] += data[i * ncol + j];
        mean[j] /= nrow;
    }
}

extern "C" void compute_mean(const float *data, float *mean, int nrow, int ncol)
{
    dim3 block(256);
    dim3 grid((ncol + block.x - 1) / block.x);
    column_mean<<<grid, block>>>(data, mean, nrow, ncol);
}
