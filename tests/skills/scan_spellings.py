"""Scans over a shared array as people write them: kernels of `T in, T out, T sums, n` with their launcher."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Spelling:
    """One way to write a block's scan."""

    name: str
    kind: str
    body: str
    threads: int = 128
    head: str = ""
    launch: str = ""
    template: str = ""
    per_block: int = 0
    """Elements that a block takes; 0 for one a thread."""

    @property
    def source(self) -> str:
        """A file with the kernel and its launcher `f`."""
        kind, size = self.kind, self.per_block or self.threads
        parameters = f"const {kind}* in, {kind}* out, {kind}* sums, int n"
        launch = self.launch or f"k<<<(n + {size} - 1) / {size}, {self.threads}>>>(in, out, sums, n);"
        return (
            f"#include <cuda_runtime.h>\n{self.head}\n{self.template}__global__ void k({parameters})\n{{\n{self.body}}}\n\n"
            f'extern "C" void f({parameters})\n{{\n    {launch}\n}}\n'
        )


_DOUBLE = """\
    __shared__ {kind} {array}[2][SIZE];
    const int g = blockIdx.x * SIZE + threadIdx.x;
    int from = 0;
    {array}[from][threadIdx.x] = g < n ? in[g] : {neutral};
    __syncthreads();
    for (int d = 1; d < SIZE; d <<= 1) {{
        {array}[1 - from][threadIdx.x] = {array}[from][threadIdx.x];
        if (threadIdx.x >= d)
            {update}
        from ^= 1;
        __syncthreads();
    }}
    if (g < n)
        out[g] = {array}[from][threadIdx.x];
    if (threadIdx.x == 0)
        sums[blockIdx.x] = {array}[from][SIZE - 1];
"""
_REGISTER = """\
    __shared__ {kind} s[{threads}];
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + t;
    {kind} sum = 0;
    if (i < n)
        sum = in[i];
    s[t] = sum;
    __syncthreads();
    {loop} {{
        {kind} left = t >= step ? s[t - step] : 0;
        __syncthreads();
        sum += left;
        s[t] = sum;
        __syncthreads();
    }}
    if (i < n)
        out[i] = sum;
    if (t == blockDim.x - 1)
        sums[blockIdx.x] = sum;
"""
_SWEEPS = """\
    __shared__ {kind} tree[{size}];
    int t = threadIdx.x, base = blockIdx.x * {size};
    tree[2 * t] = base + 2 * t < n ? in[base + 2 * t] : 0;
    tree[2 * t + 1] = base + 2 * t + 1 < n ? in[base + 2 * t + 1] : 0;
    int offset = 1;
    for (int d = {size} >> 1; d > 0; d >>= 1) {{
        __syncthreads();
        if (t < d) {{
            int ai = offset * (2 * t + 1) - 1;
            int bi = offset * (2 * t + 2) - 1;
            tree[bi] += tree[ai];
        }}
        offset *= 2;
    }}
    if (t == 0)
        tree[{size} - 1] = 0;
    for (int d = 1; d < {size}; d *= 2) {{
        offset >>= 1;
        __syncthreads();
        if (t < d) {{
            int ai = offset * (2 * t + 1) - 1;
            int bi = offset * (2 * t + 2) - 1;
            {kind} x = tree[ai];
            tree[ai] = tree[bi];
            tree[bi] += x;
        }}
    }}
    __syncthreads();
    if (base + 2 * t < n)
        out[base + 2 * t] = tree[2 * t];
    if (base + 2 * t + 1 < n)
        out[base + 2 * t + 1] = tree[2 * t + 1];
    if (t == 0)
        sums[blockIdx.x] = tree[{size} - 1];
"""
_FOR = "for (int step = 1; step < blockDim.x; step *= 2)"
SPELLINGS = (
    Spelling(
        "two_buffers",
        "int",
        _DOUBLE.format(
            kind="int",
            array="buf",
            neutral="0",
            update="buf[1 - from][threadIdx.x] += buf[from][threadIdx.x - d];",
        ),
        256,
        "#define SIZE 256",
    ),
    Spelling(
        "largest_so_far",
        "unsigned",
        _DOUBLE.format(
            kind="unsigned",
            array="best",
            neutral="0u",
            update="best[1 - from][threadIdx.x] = max(best[from][threadIdx.x - d], best[from][threadIdx.x]);",
        ),
        64,
        "constexpr int SIZE = 64;",
    ),
    Spelling(
        "bits_so_far",
        "unsigned long long",
        _DOUBLE.format(
            kind="unsigned long long",
            array="seen",
            neutral="0",
            update="{ unsigned long long o = seen[from][threadIdx.x - d]; seen[1 - from][threadIdx.x] |= o; }",
        ),
        template="template <int SIZE> ",
        launch="k<128><<<(n + 127) / 128, 128>>>(in, out, sums, n);",
    ),
    Spelling("in_a_register", "float", _REGISTER.format(kind="float", threads=512, loop=_FOR), 512),
    Spelling(
        "while_loop",
        "int",
        _REGISTER.format(kind="int", threads=96, loop="int step = 1;\n    while (step < 96)").replace(
            "        s[t] = sum;\n        __syncthreads();\n    }",
            "        s[t] = sum;\n        step += step;\n        __syncthreads();\n    }",
        ),
        96,
    ),
    Spelling(
        "one_buffer",
        "unsigned",
        """\
    extern __shared__ volatile unsigned data[];
    unsigned tid = threadIdx.x, i = blockIdx.x * blockDim.x + tid;
    data[tid] = i < n ? in[i] * 3u : 1u;
    #pragma unroll
    for (unsigned offset = 1u; offset < 1024u; offset = offset * 2u) {
        unsigned value = 1u;
        __syncthreads();
        if (int(tid) - int(offset) >= 0)
            value = data[tid - offset];
        __syncthreads();
        data[tid] = data[tid] * value;
    }
    __syncthreads();
    if (i < n) {
        unsigned before = tid > 0 ? data[tid - 1] : 1u;
        out[i] = before + data[tid];
    }
    if (tid == 0) sums[blockIdx.x] = data[1023];
""",
        1024,
        launch="k<<<(n + 1023) / 1024, 1024, 1024 * sizeof(unsigned)>>>(in, out, sums, n);",
    ),
    Spelling(
        "zeros_before",
        "int",
        """\
    __shared__ int padded[2 * 128];
    const int t = threadIdx.x, at = 128 + t, i = blockIdx.x * 128 + t;
    padded[t] = 0;
    padded[at] = i < n ? (in[i] & 7) : 0;
    __syncthreads();
    int total = padded[at];
    for (int d = 1; d <= 64; d += d) {
        total += padded[at - d];
        __syncthreads();
        padded[at] = total;
        __syncthreads();
    }
    if (i < n) out[i] = total - (in[i] & 7);
    if (t == 127) { sums[blockIdx.x] = padded[255]; }
""",
    ),
    Spelling(
        "read_by_others",
        "int",
        """\
    __shared__ int count[128];
    __shared__ int other[128];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    other[t] = i < n ? in[i] : 0;
    count[t] = i < n && (in[i] & 1);
    __syncthreads();
    for (int d = 1; d < 128; d *= 2) {
        int v = count[t];
        if (t >= d) v = v + count[t - d];
        __syncthreads();
        count[t] = v;
        __syncthreads();
    }
    int low = 0, high = 127;
    while (low < high) { int mid = (low + high) / 2; if (count[mid] <= t) low = mid + 1; else high = mid; }
    if (i < n) out[i] = other[low] + count[t] + (t > 0 ? count[t - 1] : 0);
    if (t == 5) sums[blockIdx.x] = count[127];
""",
    ),
    Spelling(
        "in_a_loop",
        "long long",
        """\
    __shared__ long long s[64];
    long long carry = 0;
    for (int start = 0; start < n; start += 64) {
        const int i = start + threadIdx.x;
        s[threadIdx.x] = i < n ? in[i] : 0;
        __syncthreads();
        for (int d = 1; d < 64; d *= 2) {
            long long v = threadIdx.x >= d ? s[threadIdx.x - d] : 0;
            __syncthreads();
            s[threadIdx.x] += v;
            __syncthreads();
        }
        if (i < n) out[i] = carry + s[threadIdx.x];
        carry += s[63];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[0] = carry;
""",
        64,
        launch="k<<<1, 64>>>(in, out, sums, n);",
    ),
    Spelling("sweeps", "int", _SWEEPS.format(kind="int", size=256), per_block=256),
    Spelling("sweeps_of_doubles", "double", _SWEEPS.format(kind="double", size=128), 64, per_block=128),
    Spelling(
        "least_so_far",
        "float",
        """\
    __shared__ float low[2 * 128];
    int t = threadIdx.x, out_at = 0, in_at = 1, i = blockIdx.x * 128 + t;
    low[t] = i < n ? in[i] : 1e30f;
    __syncthreads();
    for (int d = 1; d < 128; d *= 2) {
        out_at = 1 - out_at;
        in_at = 1 - out_at;
        float a = low[in_at * 128 + t];
        if (t >= d) { float b = low[in_at * 128 + t - d]; if (b < a) a = b; }
        low[out_at * 128 + t] = a;
        __syncthreads();
    }
    if (i < n) out[i] = low[out_at * 128 + t];
    if (t == 127) sums[blockIdx.x] = low[out_at * 128 + t];
""",
    ),
    Spelling(
        "results_before",
        "float",
        """\
    __shared__ float s[2][256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;  // the element
    const float scale = 2;
    float x = 0;
    int cur = 0;
    if (i < n)
        x = in[i] * scale;
    s[cur][threadIdx.x] = x;
    __syncthreads();
    #pragma unroll
    for (int d = 1; d < blockDim.x; d <<= 1, cur ^= 1) {
        float v = s[cur][threadIdx.x];
        if (d <= threadIdx.x)
            v += s[cur][threadIdx.x - d];
        s[cur ^ 1][threadIdx.x] = v;
        __syncthreads();
    }
    float before = threadIdx.x > 0 ? s[cur][threadIdx.x - 1] : 0.0f;
    // nothing behind the end
    if (i >= n)
        return;
    x += before;
    out[i] = x;
    if (threadIdx.x == 3)
        sums[blockIdx.x] = s[cur][255] + scale;
""",
        256,
        launch="dim3 grid((n + 255) / 256), block(256);\n    k<<<grid, block>>>(in, out, sums, n);",
    ),
    Spelling(
        "kept_behind_a_store",
        "int",
        """\
    __shared__ int bits[256];
    const int t = threadIdx.x;
    const long long i = (long long)blockIdx.x * 256 + t;
    int own = i < n ? in[i] & 1023 : 0, all = own;
    bits[t] = own;
    __syncthreads();
    for (int d = 1; d < 256; d *= 2) {
        int left = 0;
        if (t - d >= 0) left = bits[t - d];
        __syncthreads();
        all = all ^ left;
        bits[t] = all;
        __syncthreads();
    }
    int twice = 2 * all;
    if (i < n && own >= 0) out[i] = all ^ own;
    twice += own;
    if (t == 255) { sums[blockIdx.x] = twice; }
""",
        256,
    ),
)
