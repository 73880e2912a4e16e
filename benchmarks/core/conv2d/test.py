import numpy as np

CASES = [
    dict(width=1, height=1, radius=0),
    dict(width=5, height=3, radius=2),
    dict(width=75, height=50, radius=1),
    dict(width=4096, height=4096, radius=2, time=True),
]
TOLERANCE = dict(rtol=1e-4, atol=1e-4)


def make_inputs(rng, width, height, radius):
    size = 2 * radius + 1
    return {
        "image": rng.uniform(0, 1, (height, width)).astype(np.float32),
        "filter": rng.standard_normal((size, size), dtype=np.float32),
        "width": width,
        "height": height,
        "radius": radius,
    }


def reference(image, filter, width, height, radius):
    padded = np.pad(image.astype(np.float64), radius)
    result = np.zeros((height, width))
    for row, weights in enumerate(filter.astype(np.float64)):
        for col, weight in enumerate(weights):
            result += weight * padded[row : row + height, col : col + width]
    return {"result": result}


def cost(width, height, radius):
    return dict(bytes=8 * width * height, flops=2 * (2 * radius + 1) ** 2 * width * height)


def baseline(image, filter):
    """CuPy's direct correlation; cuDNN is slow at a single channel."""
    import cupyx.scipy.ndimage

    return cupyx.scipy.ndimage.correlate(image, filter, mode="constant")
