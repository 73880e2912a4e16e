// out[index[i]] += value[i]
__global__ void scatter_add_kernel(const int *__restrict__ index, const float *__restrict__ value, float *__restrict__ out, long count)
{
    long stride = (long)gridDim.x * blockDim.x;
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        atomicAdd(out + index[i], value[i]);
}

extern "C" cudaError_t scatter_add(const int *index, const float *value, float *out, long count)
{
    long blocks = (count + 255) / 256;
    if (blocks > 4096) blocks = 4096;
    scatter_add_kernel<<<(int)blocks, 256>>>(index, value, out, count);
    return cudaGetLastError();
}
