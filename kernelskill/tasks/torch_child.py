"""The process that looks at a file with a PyTorch module. The user's code runs here.

Started as `python -P -m kernelskill.tasks.torch_child FILE ANSWER`; writes what it found, or what went
wrong, to ANSWER as JSON.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from kernelskill.errors import TaskError
from kernelskill.tasks.c_names import free_name
from kernelskill.tasks.torch_facts import ModuleFacts, Value, size_rows
from kernelskill.tasks.torch_module import Instance, TorchModule, output_names

_SMALL = 8
"""Numbers up to this are kernel sizes, strides and the like, which stay as they are."""
_AWKWARD = ((7, 5, 11, 13, 9, 17, 19, 23), (33, 21, 65, 37, 50, 29, 41, 35))
_ROUND = ((32, 16, 64, 48, 96, 80, 112, 128), (16, 16, 16, 16, 16, 16, 16, 16), (64,) * 8)
_UNFIT = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What a module raises at sizes that are not for it."""
_REMEDY = "Model(*get_init_inputs())(*get_inputs()) must work on the CPU"
Sizes = dict[str, int]


def look_at(source: TorchModule) -> ModuleFacts:
    """Return the module's tensors and the sizes at which it can be tested.

    Raises:
        TaskError: It cannot be given to a launcher.
    """
    original = source.constants
    whole = Instance(source, 0, original)
    small = list(_small_cases(source, original))
    varied = [name for name in original if any(case[name] != original[name] for case in small)]
    runs = [(Instance(source, 0, case), case) for case in small] or [(whole, original)]
    outputs = [instance.run() for instance, _ in runs]
    _require_repeatable(runs[0][0], outputs[0])
    instances = [instance for instance, _ in runs] + ([whole] if small else [])
    notes = []
    if not small:
        notes.append(
            "no smaller sizes were found at which the module works; the only case is the original one, "
            "and the kernel may rely on its sizes"
        )
    cases = [*small, original]
    numbers = [instance.numbers for instance in instances]
    moving = [n for n in numbers[0] if n not in varied and _varies(each.get(n, 0) for each in numbers)]
    facts = ModuleFacts(
        values=(*_given(instances), *_results(outputs)),
        cases=tuple({name: case[name] for name in varied} for case in cases),
        derived=tuple({name: each[name] for name in moving} for each in numbers),
        notes=tuple(notes),
    )
    facts = facts.model_copy(update={"extents": _unexplained(facts)})
    return facts.model_copy(update={"values": (*facts.values, *_sizes(facts))})


def _varies(values: Iterable[int]) -> bool:
    return len(set(values)) > 1


def _unexplained(facts: ModuleFacts) -> dict[str, tuple[str, int]]:
    """Return a name for every length of an input or weight that varies and that no size explains."""
    known = set(size_rows(facts).values())
    taken = {value.name for value in facts.values} | set(size_rows(facts))
    found: dict[str, tuple[str, int]] = {}
    for value in facts.values:
        if value.role not in ("input", "weight"):
            continue
        for axis, row in enumerate(zip(*value.shapes, strict=True)):
            if _varies(row) and row not in known:
                found[free_name(f"{value.name}_size{axis}", taken)] = (value.name, axis)
                known.add(row)
    return found


def _given(instances: list[Instance]) -> Iterator[Value]:
    """Return inputs and weights with their shapes in every case."""
    first = instances[0]
    tensors = [instance.tensors() for instance in instances]
    wide = any(_is_double(value) for value in (*first.arguments.values(), *tensors[0].values()))
    for name, value in first.arguments.items():
        if isinstance(value, torch.Tensor):
            shapes = tuple(tuple(instance.arguments[name].shape) for instance in instances)
            yield Value(name=name, role="input", dtype=_dtype(value), shapes=shapes)
        else:
            yield Value(name=name, role="number", dtype=_number(value, wide=wide))
    for name, tensor in tensors[0].items():
        shapes = tuple(tuple(each[name].shape) for each in tensors)
        yield Value(name=name, role="weight", dtype=_dtype(tensor), shapes=shapes, origin=first.weights[name])


def _results(outputs: list[tuple[Any, ...]]) -> Iterator[Value]:
    for position, name in enumerate(output_names(len(outputs[0]))):
        shapes = tuple(tuple(each[position].shape) for each in outputs)
        yield Value(name=name, role="output", dtype=_dtype(outputs[0][position]), shapes=shapes)


def _sizes(facts: ModuleFacts) -> Iterator[Value]:
    for name, row in size_rows(facts).items():
        yield Value(name=name, role="size", dtype="int64" if max(row) >= 1 << 31 else "int32")


def _small_cases(source: TorchModule, original: Sizes) -> Iterator[Sizes]:
    """Return sizes, small and odd where the module permits it, that differ from one another."""
    large = [name for name, value in original.items() if value > _SMALL]
    seen: list[Sizes] = []
    if not large:
        return
    bases = (*_AWKWARD, *_ROUND)
    base = next((c for row in bases if _works(source, c := _smaller(original, large, row))), None)
    base = base or next((c for c in _in_proportion(original, large) if _works(source, c)), None)
    if base is None or base == original:
        return
    for row in _AWKWARD:
        case = _smaller(original, large, row)
        if not _works(source, case):
            case = _one_by_one(source, base, case)
        if case not in seen and case != original:
            seen.append(case)
            yield case


def _one_by_one(source: TorchModule, base: Sizes, wanted: Sizes) -> Sizes:
    """Return the base with as many of the wanted sizes as the module works with."""
    case = dict(base)
    for name, value in wanted.items():
        trial = {**case, name: value}
        if trial != case and _works(source, trial):
            case = trial
    return case


def _smaller(original: Sizes, large: list[str], row: tuple[int, ...]) -> Sizes:
    small = {name: row[position % len(row)] for position, name in enumerate(large)}
    return {name: min(value, small.get(name, value)) for name, value in original.items()}


def _in_proportion(original: Sizes, large: list[str]) -> Iterator[Sizes]:
    for divisor in (256, 64, 16, 4):
        if all(original[name] % divisor == 0 for name in large):
            yield {n: v // divisor if n in large else v for n, v in original.items()}


def _works(source: TorchModule, sizes: Sizes) -> bool:
    """Return whether the module gives finite values at these sizes."""
    try:
        outputs = Instance(source, 0, sizes).run()
    except _UNFIT:
        return False
    return all(output.numel() > 0 and bool(torch.isfinite(output).all()) for output in outputs)


def _require_repeatable(instance: Instance, outputs: tuple[Any, ...]) -> None:
    torch.manual_seed(12345)
    again = instance.run()
    if not all(torch.equal(a, b) or bool(a.isnan().any()) for a, b in zip(outputs, again, strict=True)):
        raise TaskError(
            "Model.forward gives other values when it is called again",
            remedy="take randomness such as dropout out of it, or make it an input",
        )


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _is_double(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype == torch.float64


def _number(value: bool | int | float, *, wide: bool) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, float):
        return "float64" if wide else "float32"
    return "int32" if -(1 << 31) <= value < 1 << 31 else "int64"


def _explained(kind: type[BaseException], error: BaseException, doing: str, file: Path) -> dict[str, str]:
    if isinstance(error, TaskError):
        return {"fact": error.message, "remedy": error.remedy}
    if isinstance(error, SyntaxError):
        return {"fact": f"{file.name}:{error.lineno or 1}: {error.msg}", "remedy": ""}
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(file)]
    where = f"{file.name}:{frames[-1].lineno}" if frames else file.name
    first = (str(error).strip().splitlines() or [""])[0]
    remedy = f"see: {frames[-1].line}" if frames and frames[-1].line else _REMEDY
    return {"fact": f"{where}: {doing} raised {kind.__name__}: {first}".rstrip(": "), "remedy": remedy}


def main(file: Path, answer: Path) -> None:
    """Look at the file and write what was found."""
    stage = [f"loading {file.name}"]

    def explain(kind: type[BaseException], error: BaseException, _trace: TracebackType | None) -> None:
        written: Mapping[str, Any] = {"error": _explained(kind, error, stage[0], file)}
        answer.write_text(json.dumps(written))

    sys.excepthook = explain
    sys.path.insert(0, str(file.parent))
    torch.set_num_threads(1)
    facts = look_at(TorchModule(file, stage))
    answer.write_text(json.dumps({"facts": facts.model_dump(mode="json")}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
