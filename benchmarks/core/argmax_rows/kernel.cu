#include <cuda_runtime.h>

// Index of the largest value of each row, the first of equal ones: the greedy choice of a decoder.
__global__ void argmax_kernel(const float* logits, int* best, int rows, int vocabulary)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;

    const float* scores = &logits[(size_t)row * vocabulary];
    float top = scores[0];
    int where = 0;
    for (int i = 1; i < vocabulary; ++i) {
        if (scores[i] > top) {
            top = scores[i];
            where = i;
        }
    }
    best[row] = where;
}

extern "C" cudaError_t argmax(const float* logits, int* best, int rows, int vocabulary, cudaStream_t stream)
{
    const int threads = 128;
    argmax_kernel<<<(rows + threads - 1) / threads, threads, 0, stream>>>(logits, best, rows, vocabulary);
    return cudaGetLastError();
}
