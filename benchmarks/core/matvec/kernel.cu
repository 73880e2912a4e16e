#include "layout.h"

// y = A x, one thread a row
__global__ void matvec(const float* A, const float* x, float* y, int rows, int cols)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) {
        float dot = 0;
        for (int c = 0; c < cols; ++c)
            dot += A[AT(r, c, cols)] * x[c];
        y[r] = dot;
    }
}

extern "C" void gemv(const float* A, const float* x, float* y, int rows, int cols)
{
    matvec<<<(rows + 63) / 64, 64>>>(A, x, y, rows, cols);
}
