import numpy as np

CASES = [
    dict(M=1, N=1, K=1),
    dict(M=19, N=34, K=27),
    dict(M=70, N=40, K=64),
    dict(M=2048, N=3072, K=2048, time=True),
]
# Sums of K products of unit variance.
TOLERANCE = dict(rtol=1e-4, atol=1e-3)


def make_inputs(rng, M, N, K):
    return {
        "A": rng.standard_normal((K, M), dtype=np.float32),
        "B": rng.standard_normal((N, K), dtype=np.float32),
        "alpha": 0.5,
        "M": M,
        "N": N,
        "K": K,
    }


def reference(A, B, alpha):
    return {"C": alpha * (A.T.astype(np.float64) @ B.T.astype(np.float64))}


def cost(M, N, K):
    return dict(bytes=4 * (M * K + K * N + M * N), flops=2 * M * N * K)


def baseline(A, B, alpha):
    """cuBLAS SGEMM, which takes both operands transposed and the factor; no TF32."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    unused = torch.empty((A.shape[1], B.shape[0]), device=A.device)
    return torch.addmm(unused, A.T, B.T, beta=0, alpha=alpha)
