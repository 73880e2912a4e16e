// One compare-and-exchange pass of a bitonic sorting network over 32-bit keys, in place.
__global__ void bitonic_pass(unsigned int *keys, unsigned int distance, unsigned int size, unsigned int n)
{
    unsigned int i = threadIdx.x + blockDim.x * blockIdx.x;
    unsigned int partner = i ^ distance;

    if (i < n && partner < n && partner > i) {
        unsigned int a = keys[i];
        unsigned int b = keys[partner];
        if ((i & size) == 0) {
            if (a > b) {
                keys[i] = b;
                keys[partner] = a;
            }
        } else {
            if (a < b) {
                keys[i] = b;
                keys[partner] = a;
            }
        }
    }
}

extern "C" void bitonic_step(unsigned int *keys, unsigned int distance, unsigned int size, unsigned int n)
{
    bitonic_pass<<<(n + 511) / 512, 512>>>(keys, distance, size, n);
}
