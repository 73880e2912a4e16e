"""Skills that round keep values at zeros, infinities, NaN, tiny, huge and negative numbers.

Where the product in the divisor of a quotient by roots overflows or loses bits, the rewritten quotient is the
right one.
"""

import itertools

import numpy as np
import pytest
from direct import Session, backend, build, launch

from kernelskill.schema.candidate import Candidate
from kernelskill.schema.launch_plan import Launch
from kernelskill.skills.apply import apply_step, find_steps
from tests.skills.applying import LIBRARY
from tests.skills.contexts import context_for

FORMS = {  # with the power of v that it divides by, where it does; {f} is the suffix of float literals
    "y[i] / (sqrt(v))": 0.5,
    "y[i] / (v * sqrt(v))": 1.5,
    "y[i] / (r * r * r)": 1.5,
    "y[i] / (r * r)": 1.0,
    "y[i] / (p)": 1.5,
    "y[i] / (q)": 2.5,
    "y[i] / (2 * r * v)": 1.5,
    "pow(2.0{f}, v)": None,
    "pow(10.0{f}, v)": None,
    "pow(0.25{f}, v)": None,
    "log(v) / log(2.0{f})": None,
    "3 * log(v) / log(10.0{f})": None,
}
# fmt: off
VALUES = [
    0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, -1e-40, 1e-40, 1e-30, 1e-20, 0.3, 7.7, 1e20, 1e27, 3e38,
]
# fmt: on
ABOVE = [1.5, -2.0, 0.0, -0.0, 3e30, 1e-30, np.inf]
TYPES, ENDS = {"float": np.float32, "double": np.float64}, ("", "_after")
SIZE = len(VALUES) * len(ABOVE)


def kernel(kind: str) -> str:
    forms = [form.replace("{f}", "f" if kind == "float" else "") for form in FORMS]
    lines = "".join(f"    out[{i * SIZE} + i] = {form};\n" for i, form in enumerate(forms))
    return (
        f"__global__ void {kind}s(const {kind}* x, const {kind}* y, {kind}* out) {{\n"
        f"    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i >= {SIZE}) return;\n"
        f"    {kind} v = x[i];\n    {kind} r = sqrt(v);\n    {kind} p = v * r, q = p * v;\n"
        f'{lines}}}\nextern "C" void f({kind}* x, {kind}* y, {kind}* out) {{ {kind}s<<<4, 32>>>(x, y, out); }}\n'
    )


def rewritten(source: str) -> str:
    candidate, context = Candidate.of("k.cu", {"k.cu": source}), context_for("f")
    for skill in ("compute/inverse_roots", "compute/bases_two_and_ten"):
        step = find_steps(candidate, LIBRARY.get(skill), LIBRARY, context)[0][0].step
        candidate = apply_step(candidate, step, LIBRARY, context).candidate
    return candidate.source


def outcomes() -> dict[str, np.ndarray]:
    """Return what the kernels compute, `floats` and `doubles` before and after."""
    texts, buffers = [], {}
    for kind in TYPES:
        source = kernel(kind)
        changed = rewritten(source).replace(f"{kind}s(", f"{kind}s_after(")
        assert not [word for word in (" / (", "pow(", "log(") if word in changed]
        texts += [text.split('extern "C"')[0] for text in (source, changed)]
        x, y = np.array(list(itertools.product(VALUES, ABOVE)), TYPES[kind]).T.copy()
        out = {f"{kind}s{end}": np.full((len(FORMS), SIZE), 77, TYPES[kind]) for end in ENDS}
        buffers |= {f"x_{kind}s": x, f"y_{kind}s": y, **out}
    device = backend()
    made = build("\n".join(texts), device)

    def launches(ids: dict[str, int]) -> list[Launch]:
        return [
            launch(made, f"{kind}s{end}", ids, [f"x_{kind}s", f"y_{kind}s", f"{kind}s{end}"], (4,))
            for kind, end in itertools.product(TYPES, ENDS)
        ]

    with Session(made, buffers, launches, device) as session:
        result = session.run()
        assert result.status == "passed", result
        return {name: session.read(name) for name in buffers}


@pytest.mark.slow
def test_values_at_the_edges() -> None:
    found = outcomes()
    for (kind, relative), (number, (form, power)) in itertools.product(
        {"float": 2e-6, "double": 1e-14}.items(), enumerate(FORMS.items())
    ):
        x, y = found[f"x_{kind}s"].astype(float), found[f"y_{kind}s"].astype(float)
        before, after = (found[f"{kind}s{end}"][number] for end in ENDS)
        with np.errstate(all="ignore"):
            wide = np.abs(x) ** (power or 0)
            exact = y / wide / (2 if "2 * r" in form else 1)
            # The product of the original keeps all its bits, or is what it must be.
            usual = (x <= 0) | ~np.isfinite(x) | ((wide > 1e-37) & (wide < 1e38)) | (kind == "double")
            right = np.where(usual, before, exact.astype(TYPES[kind]))
            close = np.abs(after - right) <= np.abs(right) * relative + (1e-43 if kind == "float" else 0)
        same = (after == right) & (np.signbit(after) == np.signbit(right))
        fine = same | (np.isnan(after) & np.isnan(right)) | (close & (right != 0))
        wrong = np.flatnonzero(~fine)
        assert not wrong.size, (kind, form, [(x[i], y[i], right[i], after[i]) for i in wrong[:4]])


@pytest.mark.slow
def test_roots_of_normal_numbers_keep_every_bit() -> None:
    source = (
        "__global__ void roots(float* x, float* out) {\n    int i = threadIdx.x;\n    float v = x[i];\n"
        "    out[i] = rsqrtf(v * v + 1.1755e-38f);\n    out[i + 16] = rsqrtf(fmaxf(v, 1e-37f));\n}\n"
        'extern "C" void f(float* x, float* out) { roots<<<1, 16>>>(x, out); }\n'
    )
    candidate, context = Candidate.of("k.cu", {"k.cu": source}), context_for("f")
    step = find_steps(candidate, LIBRARY.get("compute/normal_roots"), LIBRARY, context)[0][0].step
    changed = apply_step(candidate, step, LIBRARY, context).candidate.source
    assert changed.count("= rsqrt_of_normal(") == 2
    texts = [source, changed.replace("roots(", "roots_after(")]
    buffers = {"x": np.array(VALUES, np.float32)}
    buffers |= {f"out{end}": np.full(32, 77, np.float32) for end in ENDS}
    device = backend()
    made = build("\n".join(text.split('extern "C"')[0] for text in texts), device)

    def launches(ids: dict[str, int]) -> list[Launch]:
        return [launch(made, f"roots{end}", ids, ["x", f"out{end}"], (1,), (16,)) for end in ENDS]

    with Session(made, buffers, launches, device) as session:
        assert session.run().status == "passed"
        before, after = (session.read(f"out{end}") for end in ENDS)
    assert (before.view(np.uint32) == after.view(np.uint32)).all()
