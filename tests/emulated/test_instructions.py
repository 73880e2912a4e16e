"""Single instructions through inline assembly, against plain Python."""

import numpy as np
import pytest
from direct import Session, backend, build, launch

U = np.uint32
EDGES = np.array([0, 1, 2, 5, 31, 32, 33, 255, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xDEADBEEF, 0x12345678], U)
RNG = np.random.default_rng(5)
A = np.concatenate([np.repeat(EDGES, len(EDGES)), RNG.integers(0, 1 << 32, 87, dtype=np.uint64).astype(U)])
B = np.concatenate([np.tile(EDGES, len(EDGES)), RNG.integers(0, 1 << 32, 87, dtype=np.uint64).astype(U)])
C = np.roll(B, 7)
M = 0xFFFFFFFF


def signed(x):
    return x - (1 << 32) if x >> 31 else x


def bfind(x):
    return x.bit_length() - 1 & M


def bfind_signed(x):
    return bfind(~x & M if x >> 31 else x)


def prmt(a, b, c):
    all_bytes = (b << 32 | a).to_bytes(8, "little")
    out = []
    for i in range(4):
        selector = c >> 4 * i & 15
        byte = all_bytes[selector & 7]
        out.append((0xFF if byte & 0x80 else 0) if selector & 8 else byte)
    return int.from_bytes(bytes(out), "little")


def bfe(a, b, c):
    position, length = b & 255, c & 255
    return (a >> position) & ((1 << length) - 1) & M


def bfe_signed(a, b, c):
    position, length = b & 255, c & 255
    if not length:
        return 0
    value = (a >> position) & ((1 << length) - 1)
    top = min(position + length - 1, 31)
    kept = max(0, min(length, 32 - position))
    return (value | (-1 << kept if a >> top & 1 else 0)) & M


def bfi(a, b, c):
    position, length = c & 255, c >> 8 & 255
    mask = (((1 << length) - 1) << position) & M
    return (b & ~mask | a << position & mask) & M


def dp4a(a, b, c):
    parts = [(a >> 8 * i & 255, b >> 8 * i & 255) for i in range(4)]
    return (c + sum((x - 256 if x > 127 else x) * y for x, y in parts)) & M


def lop3(a, b, c):
    return (a & b | ~a & c) & M


def shf_left(a, b, c):
    n = min(c, 32)
    return ((b << 32 | a) << n) >> 32 & M


def shf_right(a, b, c):
    return (b << 32 | a) >> (c & 31) & M


CASES = {
    "bfind.u32 %0, %1;": lambda a, b, c: bfind(a),
    "bfind.s32 %0, %1;": lambda a, b, c: bfind_signed(a),
    "bfind.shiftamt.u32 %0, %1;": lambda a, b, c: 31 - bfind(a) if a else M,
    "prmt.b32 %0, %1, %2, %3;": prmt,
    "shf.l.clamp.b32 %0, %1, %2, %3;": shf_left,
    "shf.r.wrap.b32 %0, %1, %2, %3;": shf_right,
    "dp4a.s32.u32 %0, %1, %2, %3;": dp4a,
    "lop3.b32 %0, %1, %2, %3, 0xCA;": lop3,
    "mul24.lo.u32 %0, %1, %2;": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) & M,
    "mad.hi.u32 %0, %1, %2, %3;": lambda a, b, c: (a * b >> 32) + c & M,
    "mul.hi.s32 %0, %1, %2;": lambda a, b, c: signed(a) * signed(b) >> 32 & M,
    "add.sat.s32 %0, %1, %2;": lambda a, b, c: max(-(1 << 31), min((1 << 31) - 1, signed(a) + signed(b))) & M,
    "add.u16x2 %0, %1, %2;": lambda a, b, c: (a + b & 0xFFFF) | ((a >> 16) + (b >> 16) & 0xFFFF) << 16,
    "max.u16x2 %0, %1, %2;": lambda a, b, c: max(a & 0xFFFF, b & 0xFFFF) | max(a >> 16, b >> 16) << 16,
    "{ .reg .u32 t; add.cc.u32 t, %1, %2; addc.u32 %0, %3, 0; }": lambda a, b, c: c + (a + b >> 32) & M,
    "{ .reg .u32 t; sub.cc.u32 t, %1, %2; subc.u32 %0, %3, 0; }": lambda a, b, c: c - (a < b) & M,
    "{ .reg .u32 t; mad.lo.cc.u32 t, %1, %2, %3; madc.hi.u32 %0, %1, %2, 0; }": lambda a, b, c: (
        (a * b + c) >> 32 & M
    ),
    "bfe.u32 %0, %1, %2, %3;": bfe,
    "bfe.s32 %0, %1, %2, %3;": bfe_signed,
    "{ .reg .u32 l; shr.u32 l, %3, 8; bfi.b32 %0, %1, %2, %3, l; }": bfi,
    "shl.b32 %0, %1, %2;": lambda a, b, c: (a << b) & M if b < 32 else 0,
    "shr.s32 %0, %1, %2;": lambda a, b, c: signed(a) >> min(b, 31) & M,
    "popc.b32 %0, %1;": lambda a, b, c: a.bit_count(),
    "clz.b32 %0, %1;": lambda a, b, c: 32 - a.bit_length(),
    "brev.b32 %0, %1;": lambda a, b, c: int(f"{a:032b}"[::-1], 2),
    "sad.u32 %0, %1, %2, %3;": lambda a, b, c: abs(a - b) + c & M,
    "set.lt.u32.s32 %0, %1, %2;": lambda a, b, c: M if signed(a) < signed(b) else 0,
    "slct.u32.s32 %0, %1, %2, %3;": lambda a, b, c: a if signed(c) >= 0 else b,
    "{ .reg .pred p, q; setp.gt.and.u32 p|q, %1, %2, 1; selp.u32 %0, 1, 2, q; }": lambda a, b, c: (
        2 if a > b else 1
    ),
    "{ .reg .pred p; setp.hi.u32 p, %1, %2; selp.b32 %0, %1, %3, p; }": lambda a, b, c: a if a > b else c,
    "vote.sync.ballot.b32 %0, 1, 0xffffffff;": lambda a, b, c: M,
    "{ .reg .u32 l; and.b32 l, %2, 7; min.s32 %0, %1, l; }": lambda a, b, c: min(signed(a), b & 7) & M,
    "{ .reg .u16 h, k; .reg .u32 z; mov.b32 {h, k}, %1; mov.b32 %0, {k, h}; }": lambda a, b, c: (
        (a << 16 | a >> 16) & M
    ),
    "{ .reg .s8 x; cvt.s32.s8 %0, %1; }": lambda a, b, c: ((a & 255) - 256 if a & 128 else a & 255) & M,
    "{ .reg .u64 w; mul.wide.u32 w, %1, %2; shr.u64 w, w, 17; cvt.u32.u64 %0, w; }": lambda a, b, c: (
        a * b >> 17 & M
    ),
    "div.s32 %0, %1, 7;": lambda a, b, c: (abs(signed(a)) // 7 * (-1 if a >> 31 else 1)) & M,
    "rem.u32 %0, %1, 1000;": lambda a, b, c: a % 1000,
}


def source():
    kernels = []
    for number, asm in enumerate(CASES):
        kernels.append(
            f"__global__ void k{number}(const unsigned* a, const unsigned* b, const unsigned* c, unsigned* r) {{"
            f" int i = blockIdx.x * 32 + threadIdx.x; unsigned x = 0;"
            f' asm volatile("{asm}" : "=r"(x) : "r"(a[i]), "r"(b[i]), "r"(c[i])); r[i] = x; }}'
        )
    return 'extern "C" {\n' + "\n".join(kernels) + "\n}\n"


SOURCE = source()


@pytest.fixture(scope="module")
def results():
    """All instructions in one plan, each with a result buffer of its own."""
    device = backend()
    made = build(SOURCE, device)
    buffers = dict(a=A, b=B, c=C) | {f"r{n}": np.zeros_like(A) for n in range(len(CASES))}

    def launches(ids):
        return [
            launch(made, f"k{n}", ids, ["a", "b", "c", f"r{n}"], (len(A) // 32,)) for n in range(len(CASES))
        ]

    with Session(made, buffers, launches, device) as session:
        outcome = session.run()
        assert outcome.status == "passed", outcome
        return [session.read(f"r{n}") for n in range(len(CASES))]


@pytest.mark.parametrize(("number", "asm"), list(enumerate(CASES)))
def test_integer_instruction(results, number, asm):
    got = results[number]
    expected = [CASES[asm](int(a), int(b), int(c)) for a, b, c in zip(A, B, C, strict=True)]
    wrong = np.flatnonzero(got != np.array(expected, U))
    assert not len(wrong), (
        asm,
        [hex(values[wrong[0]]) for values in (A, B, C, got)],
        hex(expected[wrong[0]]),
    )
