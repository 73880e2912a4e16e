// 2-D convolution of a grey image with a small odd filter, zero padding at the border.
__global__ void conv2d(const float* image, const float* filter, float* result, int width, int height, int radius)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (col >= width || row >= height) return;

    int size = 2 * radius + 1;
    float acc = 0.0f;
    for (int fr = 0; fr < size; fr++) {
        for (int fc = 0; fc < size; fc++) {
            int r = row + fr - radius;
            int c = col + fc - radius;
            if (r >= 0 && r < height && c >= 0 && c < width)
                acc += filter[fr * size + fc] * image[r * width + c];
        }
    }
    result[row * width + col] = acc;
}

extern "C" void convolve(const float* image, const float* filter, float* result, int width, int height, int radius)
{
    dim3 threads(16, 16);
    dim3 blocks((width + 15) / 16, (height + 15) / 16);
    conv2d<<<blocks, threads>>>(image, filter, result, width, height, radius);
}
