#include <cuda_runtime.h>

// One explicit step of the heat equation on a box in double precision, 7 points. The faces keep their values.
template <int BX, int BY, int BZ>
__global__ void heat_step(const double* __restrict__ t0, double* __restrict__ t1, int nx, int ny, int nz, double c)
{
    int i = blockIdx.x * BX + threadIdx.x;
    int j = blockIdx.y * BY + threadIdx.y;
    int k = blockIdx.z * BZ + threadIdx.z;
    if (i >= nx || j >= ny || k >= nz) return;

    long long plane = (long long)nx * ny;
    long long at = k * plane + (long long)j * nx + i;
    double here = t0[at];
    if (i == 0 || j == 0 || k == 0 || i == nx - 1 || j == ny - 1 || k == nz - 1) {
        t1[at] = here;
        return;
    }
    t1[at] = here + c * (t0[at - 1] + t0[at + 1] + t0[at - nx] + t0[at + nx] + t0[at - plane] + t0[at + plane] - 6.0 * here);
}

extern "C" cudaError_t heat3d(const double* t0, double* t1, int nx, int ny, int nz, double c)
{
    dim3 block(8, 8, 8);
    dim3 grid((nx + 7) / 8, (ny + 7) / 8, (nz + 7) / 8);
    heat_step<8, 8, 8><<<grid, block>>>(t0, t1, nx, ny, nz, c);
    return cudaGetLastError();
}
