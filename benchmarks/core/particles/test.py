import numpy as np

CASES = [dict(count=1), dict(count=300), dict(count=2001), dict(count=1 << 23, time=True)]
TOLERANCE = dict(rtol=1e-5, atol=1e-6)


def make_inputs(rng, count):
    particles = rng.standard_normal((count, 8), dtype=np.float32)
    return {"particles": particles, "gx": 0.1, "gy": -9.81, "gz": 0.25, "dt": 0.01, "count": count}


def reference(particles, gx, gy, gz, dt):
    after = particles.copy()
    moving = particles[:, 3] > 0
    after[:, 4:7] += moving[:, None] * (np.array([gx, gy, gz], np.float32) * np.float32(dt))
    after[:, 0:3] += after[:, 4:7] * np.float32(dt)
    after[:, 7] += np.float32(dt)
    return {"particles": after}


def cost(count):
    return dict(bytes=64 * count, flops=13 * count)
