"""Draft a test.py from a kernel file. The reference is left to the user: it can't be known from a signature."""

from __future__ import annotations

import keyword
import re

from kernelskill.errors import TaskError
from kernelskill.schema.base import Record
from kernelskill.source.dimensions import Dimensions
from kernelskill.source.launches import LaunchSite
from kernelskill.source.signature import DeclaredParameter, KernelDecl, find_kernels, find_launchers
from kernelskill.source.unit import SourceUnit

_INTEGERS = re.compile(
    r"\b(?:int|unsigned|long|short|size_t|ptrdiff_t|u?int(?:8|16|32|64)_t|uint|ulong|ushort)\b"
)
_DTYPES = {
    "float": "np.float32",
    "double": "np.float64",
    "int": "np.int32",
    "unsigned": "np.uint32",
    "unsigned int": "np.uint32",
    "uint": "np.uint32",
    "int32_t": "np.int32",
    "uint32_t": "np.uint32",
    "int64_t": "np.int64",
    "long": "np.int64",
    "long long": "np.int64",
    "uint64_t": "np.uint64",
    "unsigned long long": "np.uint64",
    "size_t": "np.uint64",
    "short": "np.int16",
    "int16_t": "np.int16",
    "unsigned short": "np.uint16",
    "uint16_t": "np.uint16",
    "char": "np.int8",
    "signed char": "np.int8",
    "int8_t": "np.int8",
    "unsigned char": "np.uint8",
    "uint8_t": "np.uint8",
    "uchar": "np.uint8",
    "bool": "np.bool_",
    "half": "np.float16",
    "__half": "np.float16",
    "__nv_bfloat16": "ml_dtypes.bfloat16",
    "nv_bfloat16": "ml_dtypes.bfloat16",
}
_VECTOR = re.compile(r"(u?(?:char|short|int|long|longlong)|float|double)([234])")
_LANES = {"uchar": "np.uint8", "ushort": "np.uint16", "longlong": "np.int64", "ulong": "np.uint64"}
_TIMED = {1: "1 << 24", 2: "4096", 3: "1024"}
_AWKWARD = (1000, 37, 53, 29, 7, 5)


class Draft(Record):
    """What a kernel file lacks to be a task."""

    tests: str
    """Text of the test.py."""
    launcher: str = ""
    """Text to add to the kernel file; empty where it has a launcher or needs none."""


def draft_tests(kernel_text: str) -> str:
    """Return a draft of a test.py for a kernel file."""
    return draft(kernel_text).tests


def draft(kernel_text: str, file: str = "kernel.cu") -> Draft:
    """Return a draft of a test.py, and of a launcher where the file only launches from `main`.

    Raises:
        TaskError: The file holds neither a launcher nor a kernel.
    """
    unit = SourceUnit.parse(kernel_text, file)
    launchers = [entry for entry in find_launchers(unit) if not entry.is_template]
    kernels = find_kernels(unit)
    if launchers:
        name, several = launchers[0].name, len(launchers) > 1
        return Draft(tests=_tests(file, name, launchers[0].parameters, named=several, bare=False))
    if not kernels:
        raise TaskError(
            f"{file} defines neither a launcher nor a kernel", remedy="name a file with a __global__ function"
        )
    kernel = next((kernel for kernel in kernels if kernel.is_launched), kernels[0])
    sites = unit.launches_of(kernel.name)
    if not sites or kernel.template_parameters:
        return Draft(tests=_tests(file, _instance(kernel), kernel.parameters, named=True, bare=True))
    name = f"{kernel.name}_launch"
    return Draft(
        tests=_tests(file, name, kernel.parameters, named=False, bare=False),
        launcher=_launcher(name, kernel, sites[0]),
    )


def _instance(kernel: KernelDecl) -> str:
    arguments = ", ".join("float" if name[:1] == "T" else "4" for name in kernel.template_parameters)
    return f"{kernel.name}<{arguments}>" if arguments else kernel.name


def _launcher(name: str, kernel: KernelDecl, site: LaunchSite) -> str:
    """Draft a launcher with the shape of an existing launch where the parameters suffice for it."""
    names = {parameter.name for parameter in kernel.parameters}
    sizes = _sizes(kernel.parameters)
    grid, block = _shape(site.grid, names), _shape(site.block, names)
    lines = []
    if not (grid and block):
        count = " * ".join(["(size_t)" + sizes[0], *sizes[1:2]]) if sizes else "1"
        grid, block = f"({count} + 255) / 256", "256"
        lines.append("    // The launch in main() uses names of its own: check grid and block.")
    parameters = ", ".join(f"{p.type_text} {p.name}" for p in kernel.parameters)
    call = ", ".join(p.name for p in kernel.parameters)
    lines.append(f"    {kernel.qualified_name}<<<{grid}, {block}>>>({call});")
    return "\n".join([f'extern "C" void {name}({parameters})', "{", *lines, "}", ""])


def _shape(dimensions: Dimensions, known: set[str]) -> str:
    """Return a launch's shape as text where it needs nothing but the kernel's parameters and constants."""
    texts = [component.text for component in dimensions.components or ()]
    while len(texts) > 1 and texts[-1] == "1":
        texts.pop()
    words = set(re.findall(r"[A-Za-z_]\w*", " ".join(texts))) - {"size_t", "unsigned", "int", "long"}
    if not texts or not words <= known:
        return ""
    return texts[0] if len(texts) == 1 else f"dim3({', '.join(texts)})"


def _tests(
    file: str, name: str, parameters: tuple[DeclaredParameter, ...], *, named: bool, bare: bool
) -> str:
    plain = tuple(p for p in parameters if "cudaStream_t" not in p.type_text)
    sizes = _sizes(plain)
    arguments = sizes or ["n"]
    inputs = [p for p in plain if p.pointer_depth == 0 or p.is_const]
    outputs = [p for p in plain if p.pointer_depth and not p.is_const]
    lines = [
        f'"""Test of {name} in {file}; a draft by `kernelskill init`."""',
        "",
        *(["import ml_dtypes"] if any("ml_dtypes" in _dtype(p)[0] for p in plain) else []),
        "import numpy as np",
        "",
        *([f'KERNEL = "{name}"'] if named else []),
        *_cases(arguments),
        "",
        "",
        f"def make_inputs(rng, {', '.join(arguments)}):",
        "    # The shapes are a guess from the sizes: put in what the kernel indexes.",
        "    return {",
        *(f'        "{p.name}": {_value(p, arguments, sizes)},' for p in inputs),
        "    }",
        "",
        "",
        *_reference(inputs, outputs),
    ]
    if bare:
        lines += ["", "", *_launch(arguments)]
    return "\n".join(lines) + "\n"


def _sizes(parameters: tuple[DeclaredParameter, ...]) -> list[str]:
    return [p.name for p in parameters if p.pointer_depth == 0 and _INTEGERS.search(p.type_text)]


def _cases(arguments: list[str]) -> list[str]:
    timed = _TIMED.get(len(arguments), "256")
    rows = [
        [f"{name}=1" for name in arguments],
        [f"{name}={_AWKWARD[index % len(_AWKWARD)]}" for index, name in enumerate(arguments)],
        [*(f"{name}={timed}" for name in arguments), "time=True"],
    ]
    return ["CASES = [", *(f"    dict({', '.join(row)})," for row in rows), "]"]


def _value(parameter: DeclaredParameter, arguments: list[str], sizes: list[str]) -> str:
    if parameter.pointer_depth == 0:
        if parameter.name in sizes:
            return parameter.name
        return "True" if "bool" in parameter.type_text else "1.5"
    dtype, lanes = _dtype(parameter)
    extents = [*_array_shape(parameter.name, arguments), *([str(lanes)] if lanes > 1 else [])]
    shape = extents[0] if len(extents) == 1 else f"({', '.join(extents)})"
    if dtype in ("np.float32", "np.float64"):
        return f"rng.standard_normal({shape}, dtype={dtype})"
    if "float" in dtype:
        return f"rng.standard_normal({shape}).astype({dtype})"
    high = "2" if dtype == "np.bool_" else "100"
    return f"rng.integers(0, {high}, {shape}).astype({dtype})"


def _array_shape(name: str, arguments: list[str]) -> list[str]:
    """Matrices of a product have their own shapes; anything else spans the first two sizes."""
    by_letter = {size.lower(): size for size in arguments}
    if {"m", "n", "k"} <= set(by_letter) and name.lower() in ("a", "b", "c"):
        pair = {"a": "mk", "b": "kn", "c": "mn"}[name.lower()]
        return [by_letter[letter] for letter in pair]
    return arguments[:2]


def _dtype(parameter: DeclaredParameter) -> tuple[str, int]:
    """Return the NumPy type of one lane and the number of lanes; float for a type that is not known."""
    words = re.sub(
        r"\b(?:const|volatile|__restrict__|__restrict|restrict|struct|std::)\b|[*&]|std::",
        " ",
        parameter.type_text,
    )
    base = " ".join(words.split())
    vector = _VECTOR.fullmatch(base)
    if vector:
        return _LANES.get(vector[1], _DTYPES.get(vector[1], "np.float32")), int(vector[2])
    return _DTYPES.get(base, "np.float32"), 1


def _reference(inputs: list[DeclaredParameter], outputs: list[DeclaredParameter]) -> list[str]:
    names = [p.name for p in inputs]
    listed = "**inputs" if any(keyword.iskeyword(name) for name in names) else ", ".join(names)
    written = ", ".join(f'"{p.name}": ...' for p in outputs)
    lines = [
        f"def reference({listed}):",
        f"    # What the kernel must leave in its outputs: return {{{written}}}",
    ]
    arrays = [p.name for p in inputs if p.pointer_depth]
    if [n.lower() for n in arrays] == ["a", "b"] and len(outputs) == 1 and len(names) >= 5:
        lines.append(
            f'    # A matrix product, say: return {{"{outputs[0].name}": {arrays[0]} @ {arrays[1]}}}'
        )
    elif arrays and outputs:
        sum_of = " + ".join(arrays)
        lines.append(f'    # Element by element, say: return {{"{outputs[0].name}": {sum_of}}}')
    lines += [
        "    # An output that the kernel also reads belongs into make_inputs too.",
        '    raise NotImplementedError("write the reference")',
    ]
    return lines


def _launch(arguments: list[str]) -> list[str]:
    count = " * ".join(arguments[:2])
    return [
        f"def launch({', '.join(arguments)}):",
        f"    return dict(grid=({count} + 255) // 256, block=256)",
    ]
