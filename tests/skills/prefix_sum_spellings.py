"""Prefix sums over three launches as people write them: files with a launcher `f(const T* in, T* out, N n)`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PrefixSum:
    """One way to write it."""

    name: str
    kind: str
    scan: str
    """The three kernels."""
    launches: str
    """What the launcher does between allocating `sums` and freeing it."""
    blocks: str = "(n + 127) / 128"
    count: str = "int"
    head: str = ""
    takes_overlaps: bool = False
    """Whether the original means the same wherever its arrays lie."""

    @property
    def source(self) -> str:
        """The file."""
        kind, head = self.kind, f"#include <cuda_runtime.h>\n{self.head}\n"
        return (
            f"{head}{self.scan}\n"
            f'extern "C" void f(const {kind}* in, {kind}* out, {self.count} n)\n{{\n'
            f"    const {self.count} blocks = {self.blocks};\n    {kind}* sums = nullptr;\n"
            f"    cudaMallocAsync(&sums, sizeof({kind}) * (blocks + 1), 0);\n"
            f"    {self.launches}\n    cudaFreeAsync(sums, 0);\n}}\n"
        )


_DOUBLE = """\
__global__ void scan_blocks(const {kind}* in, {kind}* out, {kind}* sums, {count} n)
{{
    __shared__ {kind} buffer[2][128];
    {count} i = blockIdx.x * 128 + threadIdx.x;
    int from = 0;
    buffer[0][threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    for (int offset = 1; offset < 128; offset *= 2) {{
        {kind} value = buffer[from][threadIdx.x];
        if (threadIdx.x >= offset)
            value += buffer[from][threadIdx.x - offset];
        buffer[1 - from][threadIdx.x] = value;
        from = 1 - from;
        __syncthreads();
    }}
    if (i < n)
        out[i] = buffer[from][threadIdx.x];
    if (threadIdx.x == 127)
        sums[blockIdx.x] = buffer[from][127];
}}
__global__ void scan_sums({kind}* sums, {count} blocks)
{{
    {kind} running = 0;
    for ({count} b = 0; b < blocks; b++) {{
        {kind} sum = sums[b];
        sums[b] = running;
        running += sum;
    }}
}}
__global__ void add_sums({kind}* out, const {kind}* sums, {count} n)
{{
    {count} i = blockIdx.x * 128 + threadIdx.x;
    if (i < n)
        out[i] += sums[blockIdx.x];
}}
"""
_LAUNCHES = """scan_blocks<<<blocks, 128>>>(in, out, sums, n);
    scan_sums<<<1, 1>>>(sums, blocks);
    add_sums<<<blocks, 128>>>(out, sums, n);"""


def doubling(kind: str, count: str = "int") -> str:
    """Return kernels that scan by doubling, over two buffers."""
    return _DOUBLE.format(kind=kind, count=count)


_INCLUSIVE_SUMS = """\
__global__ void local(const int* a, int* b, int* t, unsigned count)
{
    __shared__ int s[256];
    const unsigned lane = threadIdx.x, g = blockDim.x * blockIdx.x + lane;
    int own = 0;
    if (g < count)
        own = a[g] > 3 ? 1 : 0;
    s[lane] = own;
    __syncthreads();
    for (unsigned d = 1; d < 256; d <<= 1) {
        int left = lane >= d ? s[lane - d] : 0;
        __syncthreads();
        s[lane] += left;
        __syncthreads();
    }
    if (lane == 0)
        t[blockIdx.x] = s[255];
    if (g >= count)
        return;
    b[g] = lane > 0 ? s[lane - 1] : 0;
}
__global__ void upto(int* t, unsigned parts)
{
    int all = 0;
    for (unsigned p = 0; p < parts; ++p) {
        all = all + t[p];
        t[p] = all;
    }
}
__global__ void shift(int* b, const int* t, unsigned count)
{
    const unsigned g = blockDim.x * blockIdx.x + threadIdx.x;
    if (blockIdx.x > 0 && g < count)
        b[g] = t[blockIdx.x - 1] + b[g];
}
"""
_OTHER_BLOCKS = """\
template <int SIZE>
__global__ void chunks(const unsigned* __restrict__ in, unsigned* __restrict__ out, unsigned* __restrict__ sums, long long n)
{
    __shared__ unsigned s[SIZE];
    int t = threadIdx.x;
    long long at = (long long)blockIdx.x * SIZE + t;
    unsigned sum = at < n ? in[at] * 3u + 1u : 0u;
    s[t] = sum;
    __syncthreads();
    int step = 1;
    while (step < SIZE) {
        unsigned left = t - step >= 0 ? s[t - step] : 0u;
        __syncthreads();
        sum = sum + left;
        s[t] = sum;
        step += step;
        __syncthreads();
    }
    if (at < n) out[at] = sum;
    if (t == SIZE - 1) sums[blockIdx.x] = sum;
}
__global__ void running(const unsigned* sums, unsigned* before, long long blocks)
{
    unsigned sum = 0u;
    for (long long b = 0; b < blocks; ++b) { before[b] = sum; sum += sums[b]; }
}
__global__ void move(unsigned* out, const unsigned* before, long long n)
{
    long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n) out[at] += before[at / 256];
}
"""
SPELLINGS = (
    PrefixSum("two_buffers", "int", doubling("int"), _LAUNCHES),
    PrefixSum("long_numbers", "long long", doubling("long long"), _LAUNCHES),
    PrefixSum("floats", "float", doubling("float"), _LAUNCHES),
    PrefixSum("doubles", "double", doubling("double", "unsigned"), _LAUNCHES, count="unsigned"),
    PrefixSum(
        "in_place",
        "int",
        doubling("int"),
        f"cudaMemcpyAsync(out, in, n * sizeof(int), cudaMemcpyDeviceToDevice, 0);\n    {_LAUNCHES.replace('(in, out', '(out, out')}",
    ),
    PrefixSum(
        "exclusive_counts",
        "int",
        _INCLUSIVE_SUMS,
        """local<<<blocks, 256>>>(in, out, sums, n);
    upto<<<1, 1>>>(sums, blocks);
    // every block but the first
    shift<<<blocks, 256>>>(out, sums, n);""",
        "(n - 1) / 256 + 1",
        "unsigned",
    ),
    PrefixSum(
        "other_blocks",
        "unsigned",
        _OTHER_BLOCKS,
        """unsigned* before = nullptr;
    cudaMallocAsync(&before, sizeof(unsigned) * blocks, 0);
    dim3 threads(256);
    chunks<256><<<blocks, threads>>>(in, out, sums, n);
    running<<<1, 1>>>(sums, before, blocks);
    move<<<(n + 127) / 128, 128>>>(out, before, n);
    cudaFreeAsync(before, 0);""",
        "(n + 255) / 256",
        "long long",
    ),
    PrefixSum(
        "through_a_temporary",
        "int",
        doubling("int")
        .replace("add_sums(int* out, const", "add_sums(const int* local, int* out, const")
        .replace("out[i] += sums[blockIdx.x];", "out[i] = local[i] + sums[blockIdx.x];"),
        """int* local = nullptr;
    cudaMallocAsync(&local, sizeof(int) * n, 0);
    scan_blocks<<<blocks, 128>>>(in, local, sums, n);
    scan_sums<<<1, 1>>>(sums, blocks);
    add_sums<<<blocks, 128>>>(local, out, sums, n);
    cudaFreeAsync(local, 0);""",
        takes_overlaps=True,
    ),
)
