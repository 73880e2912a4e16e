#include <cuda_runtime.h>
#include <stdint.h>

// Cross entropy of each sample: log(sum(exp(logits))) - logits[target]
__global__ void cross_entropy_fwd(const float* logits, const int64_t* targets, float* losses, int B, int V)
{
    int b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b < B) {
        float maxval = -INFINITY;
        for (int v = 0; v < V; v++) {
            if (logits[b * V + v] > maxval) {
                maxval = logits[b * V + v];
            }
        }
        double sum = 0.0;
        for (int v = 0; v < V; v++) {
            sum += exp(logits[b * V + v] - maxval);
        }
        losses[b] = log(sum) + maxval - logits[b * V + targets[b]];
    }
}

extern "C" void cross_entropy(const float* logits, const int64_t* targets, float* losses, int B, int V)
{
    cross_entropy_fwd<<<(B + 127) / 128, 128>>>(logits, targets, losses, B, V);
}
