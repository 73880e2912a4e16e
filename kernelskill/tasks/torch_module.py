"""A file with a PyTorch module (Model, get_inputs, get_init_inputs) as inputs and reference of a test.

Runs in test processes only: it executes the user's file, and it needs PyTorch.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kernelskill.errors import TaskError
from kernelskill.tasks.arrays import to_numpy
from kernelskill.tasks.c_names import free_name, is_usable

STRUCTURE_SEED = 0
Values = dict[str, Any]
NO_EXTENTS: Mapping[str, tuple[str, int]] = types.MappingProxyType({})
_NOISE = 0.1


class TorchModule:
    """A file that defines `Model`, and the sizes that it keeps in whole numbers of its own.

    Args:
        path: The file.
        stage: Told what is being done, for whoever has to explain an error.
    """

    def __init__(self, path: Path, stage: list[str] | None = None) -> None:
        self._path = path
        self.stage = stage if stage is not None else [""]
        self.stage[0] = f"loading {path.name}"
        self._tree = ast.parse(path.read_bytes().decode("utf-8-sig"), str(path))
        names = self._executed({})
        self.constants = {
            name: names[name]
            for name in _size_names(self._tree)
            if type(names.get(name)) is int and names[name] > 0 and is_usable(name)
        }

    def inputs(
        self,
        rng: np.random.Generator,
        sizes: Mapping[str, int],
        *,
        derived: tuple[str, ...] = (),
        extents: Mapping[str, tuple[str, int]] = NO_EXTENTS,
    ) -> Values:
        """Return everything that the launcher is given: inputs, weights and sizes, by name.

        Args:
            rng: Gives the seed of PyTorch's generator.
            sizes: Of the case.
            derived: Numbers that the file computes from its sizes.
            extents: Name to a tensor and the axis whose length it is.
        """
        found = Instance(self, int(rng.integers(1 << 31)), sizes)
        values = found.values()
        lengths = {name: values[tensor].shape[axis] for name, (tensor, axis) in extents.items()}
        return {**values, **{name: found.numbers[name] for name in derived}, **lengths}

    def reference(self, given: Mapping[str, Any], sizes: Mapping[str, int]) -> Values:
        """Return what the module makes of these inputs and weights, on the CPU."""
        outputs = Instance(self, STRUCTURE_SEED, sizes).run(given)
        return dict(zip(output_names(len(outputs)), outputs, strict=True))

    def names(self, sizes: Mapping[str, int]) -> Values:
        """Return what the file defines where its sizes are these."""
        self.stage[0] = f"loading {self._path.name}"
        found = self._executed(sizes)
        for name in ("Model", "get_inputs"):
            if not callable(found.get(name)):
                raise TaskError(
                    f"{self._path.name} defines no {name}",
                    remedy="it needs class Model(nn.Module), get_inputs() and get_init_inputs()",
                )
        return found

    def _executed(self, sizes: Mapping[str, int]) -> Values:
        tree = _with_sizes(self._tree, sizes)
        module = types.ModuleType(self._path.stem)
        module.__file__ = str(self._path)
        exec(compile(tree, str(self._path), "exec", dont_inherit=True), module.__dict__)
        return module.__dict__


class Instance:
    """The module built at some sizes, with its weights and the inputs of one call."""

    def __init__(self, source: TorchModule, seed: int, sizes: Mapping[str, int]) -> None:
        names = source.names(sizes)
        self._stage, self._sizes = source.stage, dict(sizes)
        self.numbers = {n: v for n, v in names.items() if type(v) is int and n not in sizes and is_usable(n)}
        torch.manual_seed(seed)
        self._stage[0] = "get_init_inputs"
        make = names.get("get_init_inputs")
        initial = list(make()) if callable(make) else []
        self._stage[0] = "Model(*get_init_inputs())"
        self.model = names["Model"](*initial)
        if not isinstance(self.model, torch.nn.Module):
            raise TaskError("Model is no torch.nn.Module", remedy="write class Model(nn.Module)")
        _register_tensors(self.model)
        _disturb(self.model)
        self._stage[0] = "get_inputs"
        given = names["get_inputs"]()
        if not isinstance(given, list | tuple):
            raise TaskError(
                f"get_inputs returns {type(given).__name__}", remedy="return a list of tensors and numbers"
            )
        taken = (
            set(source.constants)
            | set(self.numbers)
            | set(output_names(1))
            | set(output_names(len(given) + 8)[1:])
        )
        self.arguments = dict(zip(self._call_names(given, taken), given, strict=True))
        self.weights: dict[str, str] = {}
        for name in (*dict(self.model.named_parameters()), *dict(self.model.named_buffers())):
            self.weights[free_name(name.replace(".", "_"), taken)] = name
        for name, value in self.arguments.items():
            _require_usable(name, value)

    def tensors(self) -> dict[str, Any]:
        """Return the module's parameters, then its buffers, by the launcher's names."""
        state = {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
        return {name: state[path].detach() for name, path in self.weights.items()}

    def values(self) -> Values:
        """Return inputs, weights and sizes as arrays and numbers."""
        found = {**self.arguments, **self.tensors(), **self._sizes}
        return {name: _plain(name, value) for name, value in found.items()}

    def run(self, given: Mapping[str, Any] | None = None) -> tuple[Any, ...]:
        """Return the outputs; `given` stands in for the instance's own inputs and weights."""
        own = {**self.arguments, **self.tensors()}
        values = {name: _tensor(value) for name, value in (own if given is None else given).items()}
        state = {path: values[name] for name, path in self.weights.items()}
        arguments = tuple(values[name] for name in self.arguments)
        self._stage[0] = "Model.forward"
        with torch.no_grad():
            answer = torch.func.functional_call(self.model, state, arguments)
        outputs = (answer,) if isinstance(answer, torch.Tensor) else answer
        if not isinstance(outputs, tuple | list) or not outputs:
            raise _no_tensors(answer)
        for output in outputs:
            if not isinstance(output, torch.Tensor):
                raise _no_tensors(output)
        return tuple(outputs)

    def _call_names(self, given: list[Any] | tuple[Any, ...], taken: set[str]) -> list[str]:
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = inspect.signature(self.model.forward).parameters.values()
        names = [parameter.name for parameter in parameters if parameter.kind in kinds]
        names += [f"input{number}" for number in range(len(names), len(given))]
        return [free_name(name, taken) for name, _ in zip(names, given, strict=False)]


def output_names(count: int) -> list[str]:
    """Return the launcher's names of so many outputs."""
    return ["out"] if count == 1 else [f"out{number}" for number in range(count)]


def _no_tensors(value: Any) -> TaskError:
    return TaskError(
        f"Model.forward returns {type(value).__name__}", remedy="return one tensor or a tuple of tensors"
    )


def _require_usable(name: str, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            raise TaskError(f"input {name!r} is a {value.layout} tensor", remedy="use dense tensors")
    elif not isinstance(value, bool | int | float):
        raise TaskError(
            f"input {name!r} of get_inputs is {type(value).__name__}",
            remedy="only tensors and plain numbers can be given to a launcher",
        )


def _register_tensors(model: Any) -> None:
    """Make buffers of tensors that are plain attributes, so that they become inputs like any weight."""
    for module in model.modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, torch.Tensor):
                delattr(module, name)
                module.register_buffer(name, value)


def _disturb(model: Any) -> None:
    """Add noise to weights that all are equal: ones and zeros would hide a kernel that leaves them out."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.is_floating_point() and weight.numel() and bool((weight == weight.flatten()[0]).all()):
                weight.add_(_NOISE * torch.randn_like(weight))


def _plain(name: str, value: Any) -> Any:
    return to_numpy(name, value) if isinstance(value, torch.Tensor) else value


def _tensor(value: Any) -> Any:
    """Return a tensor of its own for an array or a tensor, and a number as it is."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.name == "bfloat16":
        return torch.from_numpy(value.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(value.copy())


def _size_names(tree: ast.Module) -> list[str]:
    """Return the names of the file's constant whole numbers that anything in it reads, in its order."""
    read = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    names = [name for statement in tree.body if (name := _constant(statement))]
    return [name for name in dict.fromkeys(names) if name in read and names.count(name) == 1]


def _constant(statement: ast.stmt) -> str:
    """Return the name that a statement of the file's top level gives a value made of numbers alone."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        target, value = statement.target, statement.value
    else:
        return ""
    parts = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    is_plain = all(isinstance(node, parts) for node in ast.walk(value))
    return target.id if is_plain and isinstance(target, ast.Name) else ""


def _with_sizes(tree: ast.Module, sizes: Mapping[str, int]) -> ast.Module:
    body: list[ast.stmt] = []
    for statement in tree.body:
        name = _constant(statement)
        if name in sizes:
            target = ast.Name(id=name, ctx=ast.Store())
            statement = ast.Assign(targets=[target], value=ast.Constant(value=sizes[name]))
        body.append(statement)
    return ast.fix_missing_locations(ast.Module(body=body, type_ignores=[]))
