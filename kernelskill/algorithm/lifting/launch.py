"""Bind a launch: what the kernel's parameters, block and grid are worth in terms of one another."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Binary, Cast, Expression, Poly, Sym
from kernelskill.algorithm.lifting.arguments import Given, read_arguments
from kernelskill.algorithm.lifting.arithmetic import convert
from kernelskill.algorithm.lifting.host import HOST, HostState
from kernelskill.algorithm.lifting.machine import Machine
from kernelskill.algorithm.lifting.values import Layout, Pointer, Struct, Value, Variable
from kernelskill.algorithm.model import CannotLift, Parameter
from kernelskill.algorithm.rewriting import replace_outermost
from kernelskill.algorithm.types import cuda_name, is_integer
from kernelskill.source.definitions import KernelDef
from kernelskill.source.launches import LaunchSite

Dimensions = tuple[Expression, Expression, Expression]


@dataclass
class Binding:
    """A launch in the kernel's terms."""

    parameters: tuple[Parameter, ...]
    arguments: tuple[tuple[str, str], ...]
    host: HostState
    values: dict[str, Expression] = field(default_factory=dict)
    """Integer parameter -> its value in terms of host symbols."""
    block: Dimensions = (integers.constant(1), integers.constant(1), integers.constant(1))
    grid: Dimensions = (integers.constant(1), integers.constant(1), integers.constant(1))
    roots: dict[str, tuple[str, Expression]] = field(default_factory=dict)
    """Pointer parameter -> the launcher's pointer that it is made from, and the distance from it."""

    def in_kernel_terms(self, expression: Expression, *, expand: frozenset[str] = frozenset()) -> Expression:
        """Replace host values by the kernel's parameters where some parameter has them.

        Args:
            expression: In terms of host symbols, or of parameters.
            expand: Parameters not to use.
        """
        simple: dict[Expression, Sym] = {}
        compound: list[tuple[Expression, Sym]] = []
        for name, value in self.values.items():
            if name in expand:
                continue
            symbol = Sym(name, self.kind_of(name))
            if isinstance(value, Sym):
                simple.setdefault(value, symbol)
            elif integers.value_of(value) is None:
                compound.append((value, symbol))

        def change(node: Expression) -> Expression | None:
            for value, symbol in compound:
                if node == value:
                    return symbol
            if isinstance(node, Poly):
                return _with_products(node, compound, change)
            return simple.get(node)

        return replace_outermost(expression, change)

    def in_host_terms(self, expression: Expression, *names: str) -> Expression:
        """Replace parameters by what the launcher passes for them."""

        def change(node: Expression) -> Expression | None:
            if isinstance(node, Sym) and (not names or node.name in names):
                return self.values.get(node.name)
            return None

        return replace_outermost(expression, change)

    def kind_of(self, name: str) -> str:
        """Return the type of a parameter."""
        return next(p.kind for p in self.parameters if p.name == name)


def _with_products(node: Poly, compound: list[tuple[Expression, Sym]], change: object) -> Expression | None:
    """Replace products of host values inside a polynomial; None where there are none."""
    for value, symbol in compound:
        if not isinstance(value, Poly):
            continue
        if len(value.terms) == 1:
            quotient, rest = integers.exact_division(node, value)
            if integers.value_of(quotient) != 0:
                replaced = integers.add(integers.multiply(quotient, symbol), rest)
                return replace_outermost(replaced, change)  # type: ignore[arg-type]
        else:
            rest = integers.subtract(node, value)
            if len(integers.terms_of(rest)) < len(node.terms):
                return replace_outermost(integers.add(rest, symbol), change)  # type: ignore[arg-type]
    return None


def bind(machine: Machine, kernel: KernelDef, launch: LaunchSite, host: HostState) -> Binding:
    """Declare a kernel's parameters and builtin variables as a launch gives them.

    Raises:
        CannotLift: The arguments can't be read, or a parameter's type can't be followed.
    """
    if launch.uses_api and not launch.arguments_readable:
        raise CannotLift("the arguments of the launch cannot be read")
    if len(launch.arguments) != len(kernel.parameters):
        raise CannotLift(
            f"the launch gives {len(launch.arguments)} arguments to {len(kernel.parameters)} parameters"
        )
    given = read_arguments(machine, kernel, launch, host)
    binding = Binding(
        tuple(entry.parameter for entry in given),
        tuple((entry.parameter.name, entry.text) for entry in given),
        host,
    )
    values = {entry.parameter.name: _value(binding, entry) for entry in given}
    for declared in kernel.parameters:
        own = [entry for entry in given if entry.declared == declared.name]
        if own[0].member:
            members = tuple((entry.member, values[entry.parameter.name]) for entry in own)
            struct = Struct(machine.types.resolve(declared.pointee_type), members)
            machine.declare(Variable(declared.name, Layout(struct.name, "struct")), struct)
        else:
            layout = own[0].layout
            machine.declare(Variable(declared.name, layout, declared.is_pointer), values[declared.name])
    _shape(machine, launch, binding)
    return binding


def _value(binding: Binding, given: Given) -> Value:
    parameter = given.parameter
    if not parameter.is_pointer:
        return _scalar(binding, parameter, given.value)
    if isinstance(given.value, Pointer):
        binding.roots[parameter.name] = (given.value.buffer, given.value.offset)
    return Pointer(parameter.name, integers.constant(0, "long long"), given.layout)


def _scalar(binding: Binding, parameter: Parameter, given: Value) -> Expression:
    """Return a scalar parameter as the kernel sees it: a constant, an equal parameter, or itself."""
    own = Sym(parameter.name, parameter.kind)
    if not is_integer(parameter.kind) or not isinstance(given, Expression) or not is_integer(given.type):
        return own
    value = convert(given, parameter.kind)
    if isinstance(value, Cast | Binary) and not _is_exact(given, value):
        return own
    known = integers.value_of(value)
    if known is not None:
        return integers.constant(known, parameter.kind)
    for name, other in binding.values.items():
        if other == value and isinstance(value, Sym):
            return Sym(name, parameter.kind)
    binding.values[parameter.name] = value
    return own


def _is_exact(given: Expression, value: Expression) -> bool:
    return given == value


def _shape(machine: Machine, launch: LaunchSite, binding: Binding) -> None:
    """Set block, grid and the builtin variables."""
    given = binding.host.dimensions(launch.block.node), binding.host.dimensions(launch.grid.node)
    blocks, grids = (tuple(binding.in_kernel_terms(part) for part in parts) for parts in given)
    binding.block = (blocks[0], blocks[1], blocks[2])
    binding.grid = (grids[0], grids[1], grids[2])
    for axis, threads, count in zip("xyz", binding.block, binding.grid, strict=True):
        for base, index, size in (("blockDim", "threadIdx", threads), ("gridDim", "blockIdx", count)):
            known = integers.value_of(size)
            is_fixed = known is not None and (base == "blockDim" or known == 1)
            held = integers.typed(size, "unsigned") if is_fixed else Sym(f"{base}.{axis}", "unsigned")
            machine.builtins[f"{base}.{axis}"] = held
            position: Expression = Sym(f"{index}.{axis}", "unsigned")
            if known == 1:
                position = integers.constant(0, "unsigned")
            else:
                machine.ranges[f"{index}.{axis}"] = (integers.constant(0), held)
            machine.builtins[f"{index}.{axis}"] = position


def extra_parameter(name: str, symbol: Sym) -> Parameter:
    """Return a parameter for a size that only the launcher knows."""
    kind = symbol.kind
    return Parameter(f"{cuda_name(kind)} {name}", name, kind, False)


def is_host_symbol(name: str) -> bool:
    """Whether a symbol is known to the launcher only."""
    return name.startswith(HOST)
