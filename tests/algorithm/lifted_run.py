"""Run a launcher's lifted launches in the interpreter, and the launcher itself on the CPU."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from kernelskill.algorithm.interpret import interpret
from kernelskill.algorithm.lifting import Lifted, lift
from kernelskill.algorithm.types import numpy_type
from kernelskill.source.unit import SourceUnit
from tests.cpu_program import printed

FLOATS = 1 << 13
SIZES = ((1, 1), (7, 5), (33, 20), (2, 40), (0, 3))
HEADER = Path(__file__).parent.parent / "skills"
_CAST = re.compile(r"\((?:const )?(?:unsigned|int|long|size_t|long long|float|uint32_t)\)")
_TOGETHER = re.compile(r"__sync|__shfl")
_LOCAL = re.compile(r"(?:int|long long|long|size_t|unsigned)\s+((?:\w+ = [^;]+))$")
DRIVER = """
typedef void (*Launcher)(const float*, const float*, float*, int, int);
static void fill(std::vector<float>& v, unsigned seed) {
    for (float& x : v) { seed = seed * 1664525u + 1013904223u; x = (float)(seed >> 8) / (1 << 22) - 2.0f; }
}
int main() {
    const Launcher all[] = {%(launchers)s};
    const int sizes[][2] = {%(sizes)s};
    for (Launcher launcher : all)
        for (auto& size : sizes) {
            std::vector<float> a(%(floats)d), b(%(floats)d), c(%(floats)d);
            fill(a, 1); fill(b, 2); fill(c, 3);
            launcher(a.data(), b.data(), c.data(), size[0], size[1]);
            std::fwrite(c.data(), 4, c.size(), stdout);
        }
}
"""


def serial(source: str) -> str:
    """Return a source with its launches as calls, in a namespace of its own."""
    unit = SourceUnit.parse(source)
    data = unit.data
    run = "run_together" if _TOGETHER.search(source) else "run_grid"
    for launch in sorted(unit.launches, key=lambda entry: -entry.span.start):
        arguments = ", ".join(argument.text for argument in launch.arguments)
        grid, block = unit.text_of(launch.grid.span), unit.text_of(launch.block.span)
        called = unit.text_of(launch.name_span)
        call = f"{run}(dim3({grid}), dim3({block}), [&] {{ {called}({arguments}); }})"
        data = data[: launch.span.start] + call.encode() + data[launch.span.end :]
    text = data.decode().replace('extern "C" ', "")
    return f"namespace spelled {{\n{text}\n}}\n"


def fill(seed: int) -> np.ndarray:
    """Return the values that the driver fills a buffer with."""
    values = np.empty(FLOATS, dtype=np.float32)
    for position in range(FLOATS):
        seed = (seed * 1664525 + 1013904223) & 0xFFFFFFFF
        values[position] = np.float32(np.float32(seed >> 8) / np.float32(1 << 22)) - np.float32(2.0)
    return values


INPUTS = {name: fill(seed) for name, seed in (("a", 1), ("b", 2), ("c", 3))}


def run_on_cpu(source: str, launchers: list[str], folder: Path) -> np.ndarray:
    """Return the third buffer after every launcher and size: launcher, size, value."""
    text = (
        '#include "cpu.hpp"\n'
        + serial(source)
        + DRIVER
        % {
            "launchers": ", ".join(f"spelled::{name}" for name in launchers),
            "sizes": ", ".join(f"{{{n}, {m}}}" for n, m in SIZES),
            "floats": FLOATS,
        }
    )
    raw = printed(folder, text, HEADER)
    return np.frombuffer(raw, dtype=np.float32).reshape(len(launchers), len(SIZES), FLOATS)


def run_lifted(unit: SourceUnit, launcher: str, n: int, m: int) -> np.ndarray:
    """Return the third buffer after the lifted launches of a launcher."""
    buffers = {name: values.copy() for name, values in INPUTS.items()}
    known = _host_values(unit, launcher, n, m)
    for launch in unit.launches:
        if launch.function == launcher:
            _run_one(lift(unit, launch), buffers, known)
    return buffers["c"]


def _run_one(lifted: Lifted, buffers: dict[str, np.ndarray], known: dict[str, int]) -> None:
    arrays: dict[str, np.ndarray] = {}
    scalars: dict[str, int | float] = {}
    views: dict[str, tuple[str, int]] = {}
    for (name, text), parameter in zip(lifted.arguments, lifted.algorithm.parameters, strict=True):
        plain = _CAST.sub("", re.sub(r"\((?:const )?\w+(?: \w+)?\s*\*\)", "", text))
        if parameter.is_pointer:
            base, _, offset = plain.strip("() ").partition(" + ")
            views[name] = (base, int(offset or 0))
            kind = numpy_type(parameter.kind)
            whole = buffers[base][views[name][1] :]
            arrays[name] = whole.view(kind)
        else:
            value = _value(plain, known)
            scalars[name] = value
    for name, array in interpret(lifted.algorithm, arrays, scalars).items():
        base, offset = views[name]
        if any(store.buffer == name for store in lifted.algorithm.stores):
            buffers[base][offset:] = array.view(np.float32)


def _host_values(unit: SourceUnit, launcher: str, n: int, m: int) -> dict[str, int]:
    function = unit.function(launcher)
    assert function is not None
    known: dict[str, int] = {"n": n, "m": m}
    body = unit.text_of(function.body_span) if function.body_span is not None else ""
    for statement in body.replace("{", ";").split(";"):
        found = _LOCAL.search(statement.strip())
        for part in found.group(1).split(", ") if found is not None else ():
            name, _, text = part.partition(" = ")
            known[name.strip()] = int(_value(text, known))
    return known


def _value(text: str, known: dict[str, int]) -> int | float:
    plain = _CAST.sub("", text)
    plain = re.sub(r"([^?]+)\?([^:]+):(.+)", r"(\2) if (\1) else (\3)", plain).replace("/", "//")
    plain = re.sub(r"(?<=[\d.])f\b", "", re.sub(r"(?<=\d)[uU]\b", "", plain))
    return eval(plain, {}, dict(known))
