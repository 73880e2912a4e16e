"""Compactions over three launches as people write them: files with a launcher `f(const T* in, T* out, int* kept, int n)`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CompactionText:
    """One way to write it."""

    name: str
    kind: str
    kernels: str
    launches: str
    """What the launcher does between allocating `offsets` for `parts` counts and freeing it."""
    parts: str = "(n + 63) / 64"
    counts: str = "int"

    @property
    def source(self) -> str:
        """The file."""
        return (
            f"#include <cuda_runtime.h>\n\n{self.kernels}\n"
            f'extern "C" void f(const {self.kind}* in, {self.kind}* out, {self.counts}* kept, int n)\n{{\n'
            f"    const int parts = {self.parts};\n    {self.counts}* offsets = nullptr;\n"
            f"    cudaMallocAsync(&offsets, sizeof({self.counts}) * parts, 0);\n"
            f"    {self.launches}\n    cudaFreeAsync(offsets, 0);\n}}\n"
        )


_SUM = """\
__global__ void add_up(int* offsets, int* kept, int parts)
{
    int total = 0;
    for (int p = 0; p < parts; ++p) {
        int count = offsets[p];
        offsets[p] = total;
        total += count;
    }
    kept[0] = total;
}
"""
_LAUNCHES = """count<<<(parts + 31) / 32, 32>>>(in, offsets, n, parts);
    add_up<<<1, 1>>>(offsets, kept, parts);
    copy<<<(parts + 31) / 32, 32>>>(in, out, offsets, n, parts);"""
PLAIN = CompactionText(
    "plain",
    "float",
    f"""\
__device__ bool wanted(float v) {{ return v > 0.0f; }}
__global__ void count(const float* x, int* offsets, int n, int parts)
{{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p < parts) {{
        int found = 0;
        for (int i = p * 64; i < min(p * 64 + 64, n); ++i)
            if (wanted(x[i]))
                ++found;
        offsets[p] = found;
    }}
}}
{_SUM}
__global__ void copy(const float* x, float* y, const int* offsets, int n, int parts)
{{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p < parts) {{
        int to = offsets[p];
        for (int i = p * 64; i < min(p * 64 + 64, n); ++i)
            if (wanted(x[i]))
                y[to++] = x[i];
    }}
}}
""",
    _LAUNCHES,
)
SPELLINGS = (
    PLAIN,
    CompactionText(
        "turns_of_a_stretch",
        "int",
        f"""\
__global__ void count(const int* x, int* offsets, int n, int parts)
{{
    const int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= parts) return;
    int found = 0;
    for (int j = 0; j < 64; j++) {{
        int i = p * 64 + j;
        if (i < n) found += x[i] % 3 != 0 && x[i] > -90000;
    }}
    offsets[p] = found;
}}
{_SUM}
__global__ void copy(const int* x, int* y, const int* offsets, int n, int parts)
{{
    const int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= parts) return;
    int place = offsets[p];
    for (int j = 0; j < 64; j++) {{
        int i = p * 64 + j;
        if (i >= n) break;
        if (x[i] % 3 != 0 && x[i] > -90000) {{ y[place] = 2 * x[i] + i; place += 1; }}
    }}
}}
""".replace("        if (i >= n) break;\n        if (x", "        if (i < n && x"),
        _LAUNCHES,
    ),
    CompactionText(
        "ends_are_chosen",
        "double",
        """\
__global__ void count(const double* x, unsigned* offsets, int n)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x, end = (p + 1) * 100;
    if (p >= (n + 99) / 100) return;
    if (end > n) end = n;
    unsigned found = 0;
    for (int i = 100 * p; i < end; i++)
        found += x[i] < 5.0 ? 1u : 0u;
    offsets[p] = found;
}
__global__ void sums(const unsigned* counts, unsigned* starts, int parts)
{
    unsigned sum = 0;
    for (int p = 0; p < parts; p++) { starts[p] = sum; sum += counts[p]; }
}
__global__ void copy(const double* __restrict__ x, double* __restrict__ y, const unsigned* starts, int n)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= (n + 99) / 100) return;
    int end = (p + 1) * 100;
    if (end > n) end = n;
    unsigned at;
    at = starts[p];
    for (int i = 100 * p; i < end; i++)
        if (x[i] < 5.0)
            y[at++] = x[i];
}
""",
        """unsigned* starts = nullptr;
    cudaMallocAsync(&starts, sizeof(unsigned) * parts, 0);
    count<<<(parts + 127) / 128, 128>>>(in, offsets, n);
    sums<<<1, 1>>>(offsets, starts, parts);
    copy<<<(parts + 127) / 128, 128>>>(in, out, starts, n);
    cudaFreeAsync(starts, 0);
    cudaMemsetAsync(kept, 0, 4, 0);""",
        "(n + 99) / 100",
        "unsigned",
    ),
)
