"""Loops over 64-bit integers, as people write them."""

from __future__ import annotations

from tests.skills.uneven_spellings import launcher

KINDS = ("unsigned long long", "long long")
HEAD = """
__global__ void k(const {kind}* in, {kind}* out, int n)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    {kind} value = in[i];
    int count = 0;
{body}
}}
"""


def narrow_source(body: str, kind: str = KINDS[0], before: str = "") -> str:
    """Return a kernel whose threads step `value`, a 64-bit integer of the input, with its launcher."""
    return before + HEAD.format(kind=kind, body=body) + launcher(kind, kind)


COLLATZ = """
    while (value != 1 && count < 300) {
        if (value % 2 == 0)
            value = value / 2;
        else
            value = 3 * value + 1;
        count++;
    }
    out[i] = count + value;
"""
CHOICE = """
    for (; value > 1ULL && count < 200; ++count)
        value = (value & 1) ? value * 3ULL + 1 : value >> 1;
    out[i] = value * 1000 + count;
"""
STEP = """
    for (unsigned long long own = value; own != 1; own = own & 1 ? own + (own << 1) + 1 : own >> 1)
        if (++count == 77) break;
    out[i] = count;
"""
EARLY = """
    unsigned long long sum = 0, high = 0;
    while (count < 250) {
        count += 1;
        if (value == 0) continue;
        sum += value;
        if (value > high) high = value;
        if (!(value & 1)) { value >>= 1; continue; }
        if (value == 1) { count += 5; break; }
        value *= 3;
        value++;
        if (value > 1000000000000000ULL) { out[i] = value; return; }
    }
    out[i] = sum ^ high ^ count ^ value;
"""
DIGITS = """
    while (value) { count += value % 10; value /= 10; }
    out[i] = count;
"""
BITS = """
    while (value != 0) { value &= value - 1; count++; }
    out[i] = count;
"""
DIVISOR = """
    unsigned long long other = in[(i + 1) % n] | 1;
    while (value != 0) {
        const unsigned long long rest = other % value;
        other = value;
        value = rest;
        count++;
    }
    out[i] = other + count;
"""
POWER = """
    unsigned long long result = 1, modulus = in[(i + 3) % n] % 100000 + 1, exponent = in[(i + 5) % n];
    if (count == 0)
        while (exponent > 0) {
            if (exponent & 1) { result = result * value % modulus; }
            value = (value * value) % modulus;
            exponent >>= 1;
        }
    else
        count = 3;
    out[i] = result * 7 + value;
"""
SWITCH = """
    unsigned char low = (unsigned char)value;
    for (int turn = 0; turn < 60; ++turn) {
        uint64_t half = value >> 1, more;
        more = half + low;
        auto taken = value + low, other = value, third = value % 9;
        auto* place = &taken;
        out[i] = *place << 20 ^ other << 22 ^ third << 33;
        switch (turn % 3) {
            case 0: count += (int)(half & 7); break;
            case 1: if (half % 5 == 4) continue; count ^= 1; break;
            default: for (int j = 0; j < 2; ++j) count += more > (uint64_t)j;
        }
        value = turn & 1 ? more : static_cast<uint64_t>(half) * 2 + 1;
        if (more - half != low) value = 0;
    }
    out[i] = value + count;
"""
FUNCTION = """
typedef unsigned long long u64;
__device__ int steps(u64 value, const int limit)
{
    int count = 0;
    // until it is one
    while (1 != value && count < limit) { /* a turn */
        value = value % 2u ? 3u * value + 1u : value / 2u;
        count++;
    }
    return value == 1 ? count : -1;
}
"""
CALL = "    out[i] = steps(value, 111) + (steps(value + 1, 3) << 8);\n"
TURNED = """
    unsigned long long turned = 0;
    do {
        turned = turned * 10 + value % 10;
        if (count++ == 17) continue;
        value /= 10;
    } while (value != 0 && count < 40);
    do value = value / 3 + count; while (value > 7 && --count);
    do
    {
        for (int k = 0; k < 5; k++) { value = (value * 31 + k) % 1000003u; if (value == 4) break; }
        if (value % 64 == 3) break;
    } while (true);
    out[i] = turned * 3 + value;
"""
SIGNED = """
    while (value != 1 && value != -1 && value != 0 && count < 100) {
        if (value % 2 == 0) value /= 2; else value = 3 * value + 1;
        if (value < -17 || value > 4000000000000000000LL) break;
        count++;
    }
    out[i] = value + count;
"""
SPELLINGS = {
    "collatz": narrow_source(COLLATZ),
    "choice": narrow_source(CHOICE),
    "step": narrow_source(STEP),
    "early": narrow_source(EARLY),
    "digits": narrow_source(DIGITS),
    "bits": narrow_source(BITS),
    "divisor": narrow_source(DIVISOR),
    "power": narrow_source(POWER),
    "switch": narrow_source(SWITCH),
    "function": narrow_source(CALL, before=FUNCTION),
    "turned": narrow_source(TURNED),
    "signed": narrow_source(SIGNED, KINDS[1]),
    "signed_collatz": narrow_source(COLLATZ, KINDS[1]),
    "signed_digits": narrow_source(DIGITS, KINDS[1]),
}
