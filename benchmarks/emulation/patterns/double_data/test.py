CASES = [dict(n=1000, turns=3), dict(n=1 << 21, turns=256, time=True)]


def make_inputs(rng, n, turns):
    return {"a": rng.standard_normal(n), "n": n, "turns": turns}


def reference(a, turns):
    left = 0.5**turns
    return {"o": a * (4 * left + 8 * (1 - left)) + 6 * left}
