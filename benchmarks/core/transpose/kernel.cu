template <typename T>
__global__ void transpose(T *out, const T *in, int rows, int cols)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < cols && y < rows)
        out[(long)x * rows + y] = in[(long)y * cols + x];
}

extern "C" void transpose_f32(float *out, const float *in, int rows, int cols)
{
    dim3 threads(32, 8);
    dim3 blocks((cols + 31) / 32, (rows + 7) / 8);
    transpose<float><<<blocks, threads>>>(out, in, rows, cols);
}
