// Batch norm of NCHW activations in training: the statistics come from the batch, a block handles a channel.
#define THREADS 512

__global__ void batch_norm_train(const float *x, float *y, const float *scale, const float *shift, float *save_mean, float *save_var,
                                 int N, int C, int HW, float eps)
{
    __shared__ float partial[THREADS];
    const int c = blockIdx.x;
    const int t = threadIdx.x;
    const int count = N * HW;

    float sum = 0;
    for (int n = 0; n < N; n++)
        for (int i = t; i < HW; i += THREADS)
            sum += x[(n * C + c) * HW + i];
    partial[t] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half >>= 1) {
        if (t < half) partial[t] += partial[t + half];
        __syncthreads();
    }
    const float mean = partial[0] / count;
    __syncthreads();

    sum = 0;
    for (int n = 0; n < N; n++)
        for (int i = t; i < HW; i += THREADS) {
            float d = x[(n * C + c) * HW + i] - mean;
            sum += d * d;
        }
    partial[t] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half >>= 1) {
        if (t < half) partial[t] += partial[t + half];
        __syncthreads();
    }
    const float var = partial[0] / count;

    for (int n = 0; n < N; n++)
        for (int i = t; i < HW; i += THREADS)
            y[(n * C + c) * HW + i] = (x[(n * C + c) * HW + i] - mean) / sqrtf(var + eps) * scale[c] + shift[c];

    if (t == 0) {
        save_mean[c] = mean;
        save_var[c] = var;
    }
}

extern "C" void batch_norm(const float *x, float *y, const float *scale, const float *shift, float *save_mean, float *save_var, int N,
                           int C, int HW, float eps)
{
    batch_norm_train<<<C, THREADS>>>(x, y, scale, shift, save_mean, save_var, N, C, HW, eps);
}
