// C = alpha * A^T * B^T. A is stored K x M, B is stored N x K, both row by row.
#define BLOCK 256

#define A_T(m, k) A[(size_t)(k) * M + (m)]
#define B_T(k, n) B[(size_t)(n) * K + (k)]

__global__ void gemm_tt(const float* A, const float* B, float* C, float alpha, int M, int N, int K)
{
    size_t idx = (size_t)blockIdx.x * BLOCK + threadIdx.x;
    if (idx < (size_t)M * N) {
        int m = idx / N;
        int n = idx % N;
        float value = 0;
        int k = 0;
        while (k < K) {
            value += A_T(m, k) * B_T(k, n);
            k++;
        }
        C[idx] = alpha * value;
    }
}

extern "C" void gemm_transposed(const float* A, const float* B, float* C, float alpha, int M, int N, int K)
{
    size_t total = (size_t)M * N;
    gemm_tt<<<(total + BLOCK - 1) / BLOCK, BLOCK>>>(A, B, C, alpha, M, N, K);
}
