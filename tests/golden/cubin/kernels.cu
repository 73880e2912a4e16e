struct Big { char bytes[5000]; };
__device__ float bias = 1.0f;
__device__ int counters[16];
__constant__ float table[4];
namespace { __global__ void hidden(float* y) { y[0] = bias + table[1]; } }
template <int N> __global__ void __launch_bounds__(128) reverse(const float* x, float* y, short flag, double scale, int n) {
  __shared__ float s[N];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = x[i] * scale;
  __syncthreads();
  if (i < n && flag) y[i] = s[N - 1 - threadIdx.x];
}
extern "C" __global__ void __launch_bounds__(64, 2) big(Big b, float* y) { y[threadIdx.x] = b.bytes[threadIdx.x]; atomicAdd(counters, 1); }
void use(float* y) { hidden<<<1, 1>>>(y); reverse<128><<<1, 128>>>(y, y, 1, 2.0, 4); }
