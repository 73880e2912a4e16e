#include <cuda_runtime.h>

struct Relu {
    __device__ static float apply(float v) { return v > 0.0f ? v : 0.0f; }
};

// y = act(x W^T + b): W holds one row an output feature, as torch.nn.Linear does.
template <class Activation>
__global__ void linear_forward(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                               float* __restrict__ y, int batch, int in_features, int out_features)
{
    int feature = blockIdx.y * blockDim.y + threadIdx.y;
    int sample = blockIdx.x * blockDim.x + threadIdx.x;
    if (sample < batch && feature < out_features) {
        const float* input = x + sample * in_features;
        const float* w = weight + feature * in_features;
        float dot = bias[feature];
        for (int i = 0; i < in_features; i++)
            dot += input[i] * w[i];
        y[sample * out_features + feature] = Activation::apply(dot);
    }
}

extern "C" int linear_relu(const float* x, const float* weight, const float* bias, float* y, int batch, int in_features,
                           int out_features, cudaStream_t stream)
{
    dim3 threads(32, 8);
    dim3 grid((batch + threads.x - 1) / threads.x, (out_features + threads.y - 1) / threads.y);
    linear_forward<Relu><<<grid, threads, 0, stream>>>(x, weight, bias, y, batch, in_features, out_features);
    return (int)cudaGetLastError();
}
