#include <cuda_runtime.h>

// Group norm of [batch][channels][pixels] in two launches: statistics of each group, then every element.

struct Shape {
    int channels, groups, pixels;
};

__device__ int group_size(Shape s)
{
    return s.channels / s.groups * s.pixels;
}

__global__ void group_statistics(const float* x, float* mean, float* rstd, Shape shape, float eps)
{
    __shared__ float sum, square_sum;
    if (threadIdx.x == 0) {
        sum = 0.0f;
        square_sum = 0.0f;
    }
    __syncthreads();

    int size = group_size(shape);
    const float* group = x + (size_t)blockIdx.x * size;
    float s = 0.0f, ss = 0.0f;
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
        s += group[i];
        ss += group[i] * group[i];
    }
    atomicAdd(&sum, s);
    atomicAdd(&square_sum, ss);
    __syncthreads();

    if (threadIdx.x == 0) {
        float m = sum / size;
        mean[blockIdx.x] = m;
        rstd[blockIdx.x] = rsqrtf(square_sum / size - m * m + eps);
    }
}

__global__ void group_apply(const float* x, float* y, const float* gamma, const float* beta, const float* mean, const float* rstd,
                            Shape shape, size_t total)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= total) return;
    size_t group = i / group_size(shape);
    int channel = (i / shape.pixels) % shape.channels;
    y[i] = (x[i] - mean[group]) * rstd[group] * gamma[channel] + beta[channel];
}

extern "C" int group_norm(const float* x, float* y, const float* gamma, const float* beta, float* mean, float* rstd, int batch,
                          int channels, int groups, int pixels, float eps)
{
    Shape shape = {channels, groups, pixels};
    group_statistics<<<batch * groups, 256>>>(x, mean, rstd, shape, eps);
    size_t total = (size_t)batch * channels * pixels;
    group_apply<<<(total + 255) / 256, 256>>>(x, y, gamma, beta, mean, rstd, shape, total);
    return cudaGetLastError();
}
