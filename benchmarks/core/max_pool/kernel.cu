#include <cfloat>
#include <cuda_runtime.h>

// 3 x 3 maximum with stride 2 and a border of 1, as behind the first layer of a ResNet.
__global__ void max_pool_kernel(const float* x, float* y, int height, int width, int out_height, int out_width)
{
    const int ox = blockIdx.x * blockDim.x + threadIdx.x;
    const int oy = blockIdx.y * blockDim.y + threadIdx.y;
    const int plane = blockIdx.z;

    if (ox < out_width && oy < out_height) {
        float best = -FLT_MAX;
        for (int iy = 2 * oy - 1; iy <= 2 * oy + 1; ++iy) {
            for (int ix = 2 * ox - 1; ix <= 2 * ox + 1; ++ix) {
                if (iy >= 0 && iy < height && ix >= 0 && ix < width) {
                    const float candidate = x[(plane * height + iy) * width + ix];
                    best = candidate > best ? candidate : best;
                }
            }
        }
        y[(plane * out_height + oy) * out_width + ox] = best;
    }
}

extern "C" void max_pool(const float* x, float* y, int planes, int height, int width, cudaStream_t stream)
{
    const int out_height = (height + 1) / 2;
    const int out_width = (width + 1) / 2;
    const dim3 threads(8, 8);
    const dim3 blocks((out_width + 7) / 8, (out_height + 7) / 8, planes);
    max_pool_kernel<<<blocks, threads, 0, stream>>>(x, y, height, width, out_height, out_width);
}
