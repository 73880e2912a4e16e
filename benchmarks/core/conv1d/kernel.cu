// FIR filter: output[i] = sum of taps[k] * signal[i + k]. Outputs end where the taps would leave the signal.
__global__ void fir(const float* signal, const float* taps, float* output, long n_out, int n_taps)
{
    long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n_out) {
        output[i] = 0.0f;
        for (int k = 0; k < n_taps; ++k)
            output[i] += taps[k] * signal[i + k];
    }
}

extern "C" void fir_filter(const float* signal, const float* taps, float* output, long n_out, int n_taps)
{
    const int threads = 128;
    const long blocks = (n_out + threads - 1) / threads;
    fir<<<blocks, threads>>>(signal, taps, output, n_out, n_taps);
}
