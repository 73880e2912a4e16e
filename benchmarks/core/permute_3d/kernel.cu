// (a, b, c) -> (c, a, b): one thread an element of the input.
__global__ void permute_cab(const float *src, float *dst, unsigned int na, unsigned int nb, unsigned int nc)
{
    unsigned int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i >= na * nb * nc) return;

    unsigned int c = i % nc;
    unsigned int b = (i / nc) % nb;
    unsigned int a = i / (nc * nb);
    dst[(c * na + a) * nb + b] = src[i];
}

extern "C" void permute(const float *src, float *dst, unsigned int na, unsigned int nb, unsigned int nc)
{
    unsigned int total = na * nb * nc;
    permute_cab<<<(total + 1023) / 1024, 1024>>>(src, dst, na, nb, nc);
}
