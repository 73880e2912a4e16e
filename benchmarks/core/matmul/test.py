import numpy as np

CASES = [
    dict(M=1, N=1, K=1),
    dict(M=17, N=33, K=29),
    dict(M=48, N=64, K=40),
    dict(M=2048, N=2048, K=2048, time=True),
]


def make_inputs(rng, M, N, K):
    return {
        "A": rng.standard_normal((M, K), dtype=np.float32),
        "B": rng.standard_normal((K, N), dtype=np.float32),
        "M": M,
        "N": N,
        "K": K,
    }


def reference(A, B):
    return {"C": A.astype(np.float64) @ B.astype(np.float64)}


# Sums of K products of unit variance: their rounding errors grow with sqrt(K).
TOLERANCE = dict(rtol=1e-4, atol=1e-3)


def cost(M, N, K):
    return dict(bytes=4 * (M * K + K * N + M * N), flops=2 * M * N * K)


def baseline(A, B):
    """cuBLAS SGEMM; CuPy leaves TF32 off."""
    import cupy

    return cupy.matmul(A, B)
