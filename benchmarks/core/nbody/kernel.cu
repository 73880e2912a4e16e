// All-pairs gravity. One thread computes the acceleration of one body.
#include <cuda_runtime.h>
#include <math.h>

#define SOFTENING 1e-2f

__global__ void body_forces(const float4 *bodies, float *ax, float *ay, float *az, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;

    ax[i] = 0.0f;
    ay[i] = 0.0f;
    az[i] = 0.0f;
    for (int j = 0; j < n; ++j) {
        float dx = bodies[j].x - bodies[i].x;
        float dy = bodies[j].y - bodies[i].y;
        float dz = bodies[j].z - bodies[i].z;
        float d2 = dx * dx + dy * dy + dz * dz + SOFTENING;
        float s = bodies[j].w / pow(d2, 1.5f);  // w holds the mass
        ax[i] += dx * s;
        ay[i] += dy * s;
        az[i] += dz * s;
    }
}

extern "C" cudaError_t accelerations(const float4 *bodies, float *ax, float *ay, float *az, int n)
{
    const int threads = 128;
    body_forces<<<(n + threads - 1) / threads, threads>>>(bodies, ax, ay, az, n);
    return cudaGetLastError();
}
