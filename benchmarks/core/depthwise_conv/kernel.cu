// Depthwise 3 x 3 convolution, stride 1, zero padding: every channel has its own filter.
#include <cuda_runtime.h>

#define K 3
#define PAD (K / 2)

__global__ void depthwise(const float* input, const float* filters, float* output, int batch, int channels, int height, int width)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= batch * channels * height * width)
        return;

    int w = index % width;
    int h = index / width % height;
    int c = index / width / height % channels;
    int n = index / width / height / channels;

    float value = 0.0f;
    for (int kh = 0; kh < K; kh++) {
        int ih = h + kh - PAD;
        if (ih < 0 || ih >= height)
            continue;
        for (int kw = 0; kw < K; kw++) {
            int iw = w + kw - PAD;
            if (iw < 0 || iw >= width)
                continue;
            value += input[((n * channels + c) * height + ih) * width + iw] * filters[(c * K + kh) * K + kw];
        }
    }
    output[index] = value;
}

extern "C" cudaError_t depthwise_conv(const float* input, const float* filters, float* output, int batch, int channels, int height,
                                      int width)
{
    int total = batch * channels * height * width;
    depthwise<<<(total + 255) / 256, 256>>>(input, filters, output, batch, channels, height, width);
    return cudaGetLastError();
}
