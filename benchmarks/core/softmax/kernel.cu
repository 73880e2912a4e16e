#include <cuda_runtime.h>
#include <float.h>

// Row-wise softmax: each thread handles one row.
__global__ void softmax_kernel(const float* __restrict__ input, float* __restrict__ output, int rows, int cols)
{
    int row = blockDim.x * blockIdx.x + threadIdx.x;
    if (row < rows) {
        const float* in = input + (size_t)row * cols;
        float* out = output + (size_t)row * cols;

        float max_val = -FLT_MAX;
        for (int j = 0; j < cols; j++) {
            if (in[j] > max_val)
                max_val = in[j];
        }

        float sum = 0.f;
        for (int j = 0; j < cols; j++) {
            out[j] = expf(in[j] - max_val);
            sum += out[j];
        }

        for (int j = 0; j < cols; j++)
            out[j] /= sum;
    }
}

extern "C" void softmax(const float* input, float* output, int rows, int cols, cudaStream_t stream)
{
    int block = 128;
    int grid = (rows + block - 1) / block;
    softmax_kernel<<<grid, block, 0, stream>>>(input, output, rows, cols);
}
