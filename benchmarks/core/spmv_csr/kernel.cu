#include <cuda_runtime.h>

// y = A x for a sparse matrix in compressed rows, one thread a row.
struct Csr {
    const int* row_start;
    const int* column;
    const float* value;
};

__global__ void spmv(Csr a, const float* x, float* y, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0.0f;
        int end = a.row_start[row + 1];
        for (int i = a.row_start[row]; i < end; ++i)
            sum += a.value[i] * x[a.column[i]];
        y[row] = sum;
    }
}

extern "C" int spmv_csr(const int* row_start, const int* column, const float* value, const float* x, float* y, int rows)
{
    Csr a = {row_start, column, value};
    spmv<<<(rows + 255) / 256, 256>>>(a, x, y, rows);
    return cudaGetLastError();
}
