CASES = [
    dict(nx=1, ny=1, nz=1),
    dict(nx=3, ny=21, nz=11),
    dict(nx=35, ny=10, nz=9),
    dict(nx=320, ny=320, nz=320, time=True),
]
TOLERANCE = dict(rtol=1e-12, atol=1e-12)


def make_inputs(rng, nx, ny, nz):
    return {"t0": rng.standard_normal((nz, ny, nx)), "nx": nx, "ny": ny, "nz": nz, "c": 0.1}


def reference(t0, c):
    t1 = t0.copy()
    here = t0[1:-1, 1:-1, 1:-1]
    near = t0[1:-1, 1:-1, :-2] + t0[1:-1, 1:-1, 2:]
    near += t0[1:-1, :-2, 1:-1]
    near += t0[1:-1, 2:, 1:-1]
    near += t0[:-2, 1:-1, 1:-1]
    near += t0[2:, 1:-1, 1:-1]
    near -= 6 * here
    t1[1:-1, 1:-1, 1:-1] += c * near
    return {"t1": t1}


def cost(nx, ny, nz):
    return dict(bytes=16 * nx * ny * nz, flops=9 * nx * ny * nz)
