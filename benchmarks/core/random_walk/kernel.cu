// Random walks on a grid: every walker draws its steps from its own linear congruential generator.
#include <cuda_runtime.h>

__device__ unsigned int next_random(unsigned int *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

__global__ void walk(const unsigned int *seeds, int *x, int *y, int walkers, int steps)
{
    int w = blockIdx.x * blockDim.x + threadIdx.x;
    if (w < walkers) {
        unsigned int state = seeds[w];
        x[w] = 0;
        y[w] = 0;
        for (int s = 0; s < steps; s++) {
            switch (next_random(&state) % 4) {
            case 0: x[w] += 1; break;
            case 1: x[w] -= 1; break;
            case 2: y[w] += 1; break;
            default: y[w] -= 1; break;
            }
        }
    }
}

extern "C" void random_walk(const unsigned int *seeds, int *x, int *y, int walkers, int steps)
{
    walk<<<(walkers + 127) / 128, 128>>>(seeds, x, y, walkers, steps);
}
