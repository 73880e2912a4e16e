/* Luma of interleaved 8-bit RGB, in 1/256. Launched by the image pipeline with one thread a pixel. */
__global__ void rgb_to_grey(const unsigned char *rgb, unsigned char *grey, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;

    int offset = y * width + x;
    unsigned char r = rgb[3 * offset];
    unsigned char g = rgb[3 * offset + 1];
    unsigned char b = rgb[3 * offset + 2];
    grey[offset] = (77 * r + 150 * g + 29 * b) >> 8;
}
