import numpy as np

CASES = [
    dict(n_out=1, n_taps=1),
    dict(n_out=1003, n_taps=7),
    dict(n_out=130, n_taps=64),
    dict(n_out=1 << 25, n_taps=31, time=True),
]
TOLERANCE = dict(rtol=1e-4, atol=1e-4)


def make_inputs(rng, n_out, n_taps):
    return {
        "signal": rng.standard_normal(n_out + n_taps - 1, dtype=np.float32),
        "taps": rng.standard_normal(n_taps, dtype=np.float32),
        "n_out": n_out,
        "n_taps": n_taps,
    }


def reference(signal, taps, n_out):
    output = np.zeros(n_out, np.float32)
    part = np.empty(1 << 16, np.float32)
    # In pieces that stay in the cache.
    for start in range(0, n_out, part.size):
        piece = output[start : start + part.size]
        product = part[: piece.size]
        for k, tap in enumerate(taps):
            np.multiply(signal[start + k : start + k + piece.size], tap, out=product)
            piece += product
    return {"output": output}


def cost(n_out, n_taps):
    return dict(bytes=8 * n_out, flops=2 * n_out * n_taps)


def baseline(signal, taps, n_out, n_taps):
    """CuPy's direct correlation; cuDNN is slow at a single channel."""
    import cupyx.scipy.ndimage

    whole = cupyx.scipy.ndimage.correlate(signal, taps, mode="constant")
    return whole[n_taps // 2 : n_taps // 2 + n_out]
