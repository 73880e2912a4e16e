#include <cuda_runtime.h>

namespace nn {

// x is [batch][channels][pixels]; the bias belongs to a channel.
__global__ void bias_leaky_relu(const float* x, const float* bias, float* y, int channels, int pixels, float slope, long total)
{
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < total) {
        int channel = (i / pixels) % channels;
        float v = x[i] + bias[channel];
        y[i] = v > 0 ? v : v * slope;
    }
}

}  // namespace nn

extern "C" void bias_act(const float* x, const float* bias, float* y, int batch, int channels, int pixels, float slope)
{
    long total = (long)batch * channels * pixels;
    int threads = 512;
    nn::bias_leaky_relu<<<(total + threads - 1) / threads, threads>>>(x, bias, y, channels, pixels, slope, total);
}
