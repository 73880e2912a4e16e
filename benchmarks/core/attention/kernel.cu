#include <cuda_runtime.h>
#include <math.h>

// softmax(Q K^T / sqrt(dim)) V for many heads of short sequences; the scores are kept between the launches.

__global__ void score_kernel(const float* Q, const float* K, float* scores, int len, int dim)
{
    int key = blockIdx.x * blockDim.x + threadIdx.x;
    int query = blockIdx.y * blockDim.y + threadIdx.y;
    int head = blockIdx.z;
    if (query < len && key < len) {
        float dot = 0.0f;
        for (int d = 0; d < dim; d++)
            dot += Q[(head * len + query) * dim + d] * K[(head * len + key) * dim + d];
        scores[(head * len + query) * len + key] = dot / sqrtf((float)dim);
    }
}

__global__ void softmax_kernel(float* scores, int rows, int len)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float* s = scores + row * len;
    float top = s[0];
    for (int i = 1; i < len; i++) top = fmaxf(top, s[i]);
    float sum = 0.0f;
    for (int i = 0; i < len; i++) {
        s[i] = expf(s[i] - top);
        sum += s[i];
    }
    for (int i = 0; i < len; i++) s[i] = s[i] / sum;
}

__global__ void value_kernel(const float* scores, const float* V, float* out, int len, int dim)
{
    int d = blockIdx.x * blockDim.x + threadIdx.x;
    int query = blockIdx.y * blockDim.y + threadIdx.y;
    int head = blockIdx.z;
    if (query < len && d < dim) {
        float sum = 0.0f;
        for (int key = 0; key < len; key++)
            sum += scores[(head * len + query) * len + key] * V[(head * len + key) * dim + d];
        out[(head * len + query) * dim + d] = sum;
    }
}

extern "C" void attention(const float* Q, const float* K, const float* V, float* out, float* scores, int heads, int len, int dim)
{
    dim3 threads(16, 16);
    dim3 score_blocks((len + 15) / 16, (len + 15) / 16, heads);
    dim3 value_blocks((dim + 15) / 16, (len + 15) / 16, heads);
    score_kernel<<<score_blocks, threads>>>(Q, K, scores, len, dim);
    softmax_kernel<<<(heads * len + 127) / 128, 128>>>(scores, heads * len, len);
    value_kernel<<<value_blocks, threads>>>(scores, V, out, len, dim);
}
