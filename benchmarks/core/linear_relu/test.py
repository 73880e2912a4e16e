import numpy as np

CASES = [
    dict(batch=1, in_features=1, out_features=1),
    dict(batch=5, in_features=31, out_features=70),
    dict(batch=66, in_features=64, out_features=33),
    dict(batch=4096, in_features=1024, out_features=4096, time=True),
]
TOLERANCE = dict(rtol=1e-4, atol=1e-4)


def make_inputs(rng, batch, in_features, out_features):
    return {
        "x": rng.standard_normal((batch, in_features), dtype=np.float32),
        "weight": rng.standard_normal((out_features, in_features), dtype=np.float32)
        / np.float32(in_features**0.5),
        # Never so far below zero that nothing passes the activation.
        "bias": rng.uniform(0.5, 1.5, out_features).astype(np.float32),
        "batch": batch,
        "in_features": in_features,
        "out_features": out_features,
    }


def reference(x, weight, bias):
    y = x.astype(np.float64) @ weight.T.astype(np.float64)
    y += bias
    return {"y": np.maximum(y, 0, out=y)}


def cost(batch, in_features, out_features):
    moved = batch * in_features + out_features * in_features + batch * out_features
    return dict(bytes=4 * moved, flops=2 * batch * in_features * out_features)


def baseline(x, weight, bias):
    """cuBLASLt GEMM with bias and ReLU in its epilogue; no TF32."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    return torch._addmm_activation(bias, x, weight.T, use_gelu=False)
