#include <cuda_fp16.h>

#define WIDTH 32
#define HEIGHT 8

static __device__ float silu(float v)
{
    return v / (1.0f + expf(-v));
}

// Gate and value lie side by side in each row of the input: out = silu(gate) * value.
__global__ void swiglu_forward(const half* in, half* out, unsigned rows, unsigned hidden)
{
    const unsigned x = blockIdx.x * WIDTH + threadIdx.x;
    const unsigned y = blockIdx.y * HEIGHT + threadIdx.y;
    if (y < rows) {
        if (x < hidden) {
            const float gate = __half2float(in[y * 2 * hidden + x]);
            const float value = __half2float(in[y * 2 * hidden + hidden + x]);
            out[y * hidden + x] = __float2half_rn(silu(gate) * value);
        }
    }
}

extern "C" void swiglu(const half* in, half* out, unsigned rows, unsigned hidden)
{
    swiglu_forward<<<dim3((hidden - 1) / WIDTH + 1, (rows - 1) / HEIGHT + 1), dim3(WIDTH, HEIGHT)>>>(in, out, rows, hidden);
}
