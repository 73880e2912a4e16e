"""Kernels whose lanes have loops of different lengths, as people write them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class UnevenText:
    """One spelling: a launcher `f(const T* in, R* out, int n)`."""

    name: str
    source: str
    kind: str = "float"
    result: str = "float"


def launcher(kind: str, result: str, block: int = 64, size: str = "n", template: str = "") -> str:
    """Return a launcher of `k`."""
    return (
        f'\nextern "C" void f(const {kind}* in, {result}* out, int n)\n{{\n'
        f"    k{template}<<<({size} + {block - 1}) / {block}, {block}>>>(in, out, n);\n}}\n"
    )


COLLATZ = """
// Steps of the 3n + 1 sequence.
__global__ void k(const unsigned* start, int* steps, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;  // past the end

    unsigned long long value = start[i] % 5000 + 1;
    int count = 0;
    while (value != 1 && count < 300) {
        if (value % 2 == 0)
            value = value / 2;
        else
            value = 3 * value + 1;
        count++;
    }
    steps[i] = count;
}
""" + launcher("unsigned", "int")
ESCAPE = """
#define ESCAPED(a, b) ((a) * (a) + (b) * (b) > 4.0f)
__global__ void __launch_bounds__(128) k(const float* in, int* out, int n)
{
    const float scale = 0.5f;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;  // point
    if (i < n)
    {
        // where it starts
        const float cx = in[i] * scale, cy = in[(i + 7) % n] * scale;
        float x = 0.0f, y = 0.0f;
        const int more = 4;
        int step;
        #pragma unroll 4
        for (step = 0; step < 100; step++) {
            float next = x * x - y * y + cx;
            y = 2 * x * y + cy;
            x = next;
            if (ESCAPED(x, y))
                break;
            if (x > 1.5f) continue;
            y += 0.001f;
        }
        // how long it stayed
        out[i] = step + more;
        if (step > 90) out[i] += 1000;
    }
}
""" + launcher("float", "int", 128)
ROWS = """
template <typename T>
__global__ void k(const T* x, T* out, int n)
{
    unsigned row = threadIdx.x + blockIdx.x * 32;
    if (row >= (n + 0))
        return;
    T sum = 0;
    const T *own = x + row;
    const int end = (int)(own[1] * own[1] * 2);
    for (int at = (row * 7) % 13; at < end; ++at)
        sum += own[at];
    out[row] = sum;
}
""" + launcher("double", "double", 32, template="<double>")
ROOT = """
__device__ float improved(float guess, float value) { return 0.5f * (guess + value / guess); }
__global__ void k(const float* in, float* out, int n)
{
    size_t idx = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (n > idx) {
        float value = in[idx] * in[idx] + 0.01f;
        float guess = value, last[2];
        last[0] = 0; last[1] = value;
        for (;;) {
            guess = improved(guess, value);
            if (guess == last[0] || guess == last[1]) { break; }
            last[0] = last[1];
            last[1] = guess;
        }
        float turn = guess; /* the lane's */
        out[idx] = turn;
    }
}
""" + launcher("float", "float", 96)
NESTED = """
__global__ void k(const int* in, int* out, int n)
{
    long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) { return; }
    int left = in[i] & 63, found = 0, item = 3;
    while (left > 0 ? found < 500 : false)
        for (int part = 0; part < 5; ++part) {
            if (part == left) break;
            found += part;
            left -= part == 3;
            if (left % 2) { left--; continue; }
        }
    for (int bit = 0; bit < 4; ++bit) found ^= (left >> bit & 1) << item;
    atomicAdd(&out[i % 3], found);
}
""" + launcher("int", "int", 64)
AFTER = """
__global__ void k(const float* in, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float position = in[i], step;
    int hits = 0;
    do {
        step = position * 0.25f;
        if (hits++ == 3) continue;
        if (hits > 40) break;
        position -= step + 0.001f;
    } while (position > 0.01f || hits < i % 5);
    out[i] = position + hits;
}
""" + launcher("float", "float")
SPELLINGS = (
    UnevenText("after", AFTER),
    UnevenText("collatz", COLLATZ, "unsigned", "int"),
    UnevenText("escape", ESCAPE, "float", "int"),
    UnevenText("rows", ROWS, "double", "double"),
    UnevenText("root", ROOT),
    UnevenText("nested", NESTED, "int", "int"),
)
