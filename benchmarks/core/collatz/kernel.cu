// Steps of the 3n + 1 sequence until it reaches 1, at most `limit`.
__global__ void collatz_steps(const unsigned int *start, int *steps, int n, int limit)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;

    unsigned long long value = start[i];
    int count = 0;
    while (value != 1 && count < limit) {
        if (value % 2 == 0)
            value = value / 2;
        else
            value = 3 * value + 1;
        count++;
    }
    steps[i] = count;
}

extern "C" void collatz(const unsigned int *start, int *steps, int n, int limit)
{
    collatz_steps<<<(n + 255) / 256, 256>>>(start, steps, n, limit);
}
