#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <mma.h>
#include <cuda/barrier>
using namespace nvcuda;

extern "C" {
__global__ void wmma_f32(const __half* a, const __half* b, float* c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> A;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> B;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> C;
    wmma::fill_fragment(C, 1.f);
    wmma::load_matrix_sync(A, a, 16);
    wmma::load_matrix_sync(B, b, 16);
    wmma::mma_sync(C, A, B, C);
    for (int i = 0; i < C.num_elements; i++) C.x[i] *= 2.f;
    wmma::store_matrix_sync(c, C, 16, wmma::mem_row_major);
}
__global__ void wmma_shared_f16(const __half* a, const __half* b, __half* c) {
    __shared__ __half s[256];
    for (int i = threadIdx.x; i < 256; i += 32) s[i] = a[i];
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> A;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> B;
    wmma::fragment<wmma::accumulator, 16, 16, 16, __half> C;
    wmma::fill_fragment(C, __float2half(0.f));
    wmma::load_matrix_sync(A, s, 16);
    wmma::load_matrix_sync(B, b, 16);
    wmma::mma_sync(C, A, B, C);
    wmma::store_matrix_sync(c, C, 16, wmma::mem_row_major);
}
// c (16x8) = a (16x16, row) * b (16x8, stored by columns)
__global__ void mma_f16(const __half* a, const __half* b, float* c) {
    __shared__ __align__(16) __half s[256];
    int lane = threadIdx.x, g = lane >> 2, t = lane & 3;
    for (int i = lane; i < 256; i += 32) s[i] = a[i];
    __syncwarp();
    unsigned A[4], B[2];
    unsigned row = (lane & 7) + (lane & 8), column = (lane >> 4) * 8;
    unsigned place = (unsigned)__cvta_generic_to_shared(&s[row * 16 + column]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(A[0]), "=r"(A[1]), "=r"(A[2]), "=r"(A[3]) : "r"(place));
    B[0] = *(const unsigned*)&b[g * 16 + t * 2];
    B[1] = *(const unsigned*)&b[g * 16 + t * 2 + 8];
    float d0, d1, d2, d3;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
        : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3) : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]), "f"(0.5f));
    c[g * 8 + t * 2] = d0; c[g * 8 + t * 2 + 1] = d1; c[(g + 8) * 8 + t * 2] = d2; c[(g + 8) * 8 + t * 2 + 1] = d3;
}
__global__ void mma_tf32(const float* a, const float* b, float* c) {
    int lane = threadIdx.x, g = lane >> 2, t = lane & 3;
    unsigned A[4], B[2];
    for (int i = 0; i < 4; i++) { float v = a[(g + 8 * (i & 1)) * 8 + t + 4 * (i >> 1)]; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(A[i]) : "f"(v)); }
    for (int i = 0; i < 2; i++) { float v = b[g * 8 + t + 4 * i]; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(B[i]) : "f"(v)); }
    float d0, d1, d2, d3;
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
        : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3) : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]), "f"(0.f));
    c[g * 8 + t * 2] = d0; c[g * 8 + t * 2 + 1] = d1; c[(g + 8) * 8 + t * 2] = d2; c[(g + 8) * 8 + t * 2 + 1] = d3;
}
__global__ void mma_s8(const signed char* a, const signed char* b, int* c) {
    int lane = threadIdx.x, g = lane >> 2, t = lane & 3;
    unsigned A[4], B[2];
    for (int i = 0; i < 4; i++) A[i] = *(const unsigned*)&a[(g + 8 * (i & 1)) * 32 + t * 4 + 16 * (i >> 1)];
    for (int i = 0; i < 2; i++) B[i] = *(const unsigned*)&b[g * 32 + t * 4 + 16 * i];
    int d0, d1, d2, d3;
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
        : "=r"(d0), "=r"(d1), "=r"(d2), "=r"(d3) : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]), "r"(7));
    c[g * 8 + t * 2] = d0; c[g * 8 + t * 2 + 1] = d1; c[(g + 8) * 8 + t * 2] = d2; c[(g + 8) * 8 + t * 2 + 1] = d3;
}
__global__ void barrier_object(const int* x, int* y) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ int s[64];
    if (threadIdx.x == 0) init(&bar, 64);
    __syncthreads();
    for (int round = 0; round < 3; round++) {
        s[threadIdx.x] = x[threadIdx.x] + round;
        bar.arrive_and_wait();
        y[threadIdx.x] = s[63 - threadIdx.x];
        bar.arrive_and_wait();
    }
}
}
