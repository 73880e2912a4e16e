import numpy as np

KERNEL = "rgb_to_grey"
CASES = [
    dict(width=1, height=1),
    dict(width=33, height=7),
    dict(width=200, height=50),
    dict(width=8192, height=8192, time=True),
]


def make_inputs(rng, width, height):
    return {"rgb": rng.integers(0, 256, (height, width, 3), np.uint8), "width": width, "height": height}


def reference(rgb):
    weighted = rgb[..., 0] * np.uint16(77)
    weighted += rgb[..., 1] * np.uint16(150)
    weighted += rgb[..., 2] * np.uint16(29)
    return {"grey": (weighted >> 8).astype(np.uint8)}


def launch(width, height):
    return dict(grid=((width + 31) // 32, (height + 7) // 8), block=(32, 8))


def cost(width, height):
    return dict(bytes=4 * width * height)
