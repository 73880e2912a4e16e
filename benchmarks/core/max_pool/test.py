import numpy as np

CASES = [
    dict(planes=1, height=1, width=1),
    dict(planes=3, height=9, width=34),
    dict(planes=5, height=30, width=13),
    dict(planes=6144, height=112, width=112, time=True),
]
TOLERANCE = dict(rtol=0, atol=0)  # nothing is computed


def make_inputs(rng, planes, height, width):
    x = rng.standard_normal((planes, height, width), dtype=np.float32)
    return {"x": x, "planes": planes, "height": height, "width": width}


def reference(x):
    planes, height, width = x.shape
    rows, cols = (height + 1) // 2, (width + 1) // 2
    padded = np.full((planes, 2 * rows + 1, 2 * cols + 1), -np.inf, np.float32)
    padded[:, 1 : height + 1, 1 : width + 1] = x
    across = np.maximum(padded[:, :, 0:-2:2], padded[:, :, 1:-1:2])
    np.maximum(across, padded[:, :, 2::2], out=across)
    y = np.maximum(across[:, 0:-2:2], across[:, 1:-1:2])
    np.maximum(y, across[:, 2::2], out=y)
    return {"y": y}


def cost(planes, height, width):
    outputs = planes * ((height + 1) // 2) * ((width + 1) // 2)
    return dict(bytes=4 * planes * height * width + 4 * outputs, flops=8 * outputs)


def baseline(x):
    """PyTorch's maximum pooling."""
    import torch

    return torch.max_pool2d(x, 3, stride=2, padding=1)
