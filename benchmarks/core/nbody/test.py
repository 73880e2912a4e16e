import numpy as np

CASES = [dict(n=1), dict(n=65), dict(n=150), dict(n=8192, time=True)]


def make_inputs(rng, n):
    bodies = rng.uniform(-1, 1, (n, 4)).astype(np.float32)
    bodies[:, 3] = rng.uniform(0.5, 1.5, n)  # masses
    return {"bodies": bodies, "n": n}


def reference(bodies, n):
    place, mass = bodies[:, :3].astype(np.float64), bodies[:, 3].astype(np.float64)
    total = np.zeros((n, 3))
    for start in range(0, n, 256):
        part = slice(start, start + 256)
        distance = place[None, :, :] - place[part, None, :]
        squared = np.einsum("ijk,ijk->ij", distance, distance) + np.float64(np.float32(1e-2))
        weight = mass / (squared * np.sqrt(squared))
        total[part] = np.einsum("ij,ijk->ik", weight, distance)
    return {"ax": total[:, 0], "ay": total[:, 1], "az": total[:, 2]}


PROMISE = {"no_alias"}

# n contributions of either sign, the nearest of them up to 1e2.
TOLERANCE = dict(rtol=1e-4, atol=5e-3)


def cost(n):
    return dict(bytes=28 * n, flops=20 * n * n)
