// Euclidean norm of each row in double precision; one block a row.
#define THREADS 256

__global__ void row_norm(const double* matrix, double* norms, int cols)
{
    __shared__ double sums[THREADS];

    int tid = threadIdx.x;
    double local = 0.0;
    for (int c = tid; c < cols; c += THREADS) {
        double value = matrix[(long)blockIdx.x * cols + c];
        local += value * value;
    }
    sums[tid] = local;
    __syncthreads();

    for (int s = 1; s < THREADS; s *= 2) {
        if (tid % (2 * s) == 0)
            sums[tid] += sums[tid + s];
        __syncthreads();
    }
    if (tid == 0)
        norms[blockIdx.x] = sqrt(sums[0]);
}

extern "C" void row_norms(const double* matrix, double* norms, int rows, int cols)
{
    row_norm<<<rows, THREADS>>>(matrix, norms, cols);
}
