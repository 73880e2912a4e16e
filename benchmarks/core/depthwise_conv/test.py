import numpy as np

CASES = [
    dict(batch=1, channels=1, height=1, width=1),
    dict(batch=2, channels=3, height=7, width=35),
    dict(batch=1, channels=5, height=33, width=10),
    dict(batch=32, channels=128, height=112, width=112, time=True),
]
TOLERANCE = dict(rtol=1e-4, atol=1e-5)


def make_inputs(rng, batch, channels, height, width):
    return {
        "input": rng.standard_normal((batch, channels, height, width), dtype=np.float32),
        "filters": rng.standard_normal((channels, 3, 3), dtype=np.float32),
        "batch": batch,
        "channels": channels,
        "height": height,
        "width": width,
    }


def reference(input, filters, height, width):
    output = np.empty_like(input)
    for n, sample in enumerate(input):
        padded = np.pad(sample, ((0, 0), (1, 1), (1, 1)))
        total = np.zeros_like(sample)
        for row in range(3):
            for col in range(3):
                weight = filters[:, row, col, None, None]
                total += weight * padded[:, row : row + height, col : col + width]
        output[n] = total
    return {"output": output}


def cost(batch, channels, height, width):
    elements = batch * channels * height * width
    return dict(bytes=8 * elements, flops=18 * elements)


def baseline(input, filters, channels):
    """PyTorch's depthwise convolution, its own kernel or cuDNN's; no TF32."""
    import torch

    torch.backends.cudnn.allow_tf32 = False
    return torch.nn.functional.conv2d(input, filters[:, None], padding=1, groups=channels)
