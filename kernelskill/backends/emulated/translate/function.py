"""One function of a PTX module to one C++ function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kernelskill.backends.emulated.ptx.syntax import (
    BranchTargets,
    Function,
    Instruction,
    Label,
    Location,
    Name,
    Prototype,
    Scope,
    Statement,
    Variable,
)
from kernelskill.backends.emulated.translate.mix import BasicBlock
from kernelskill.backends.emulated.translate.opcode import Op
from kernelskill.backends.emulated.translate.refusal import Unsupported
from kernelskill.backends.emulated.translate.types import CPP, size
from kernelskill.backends.emulated.translate.values import Register, Symbol, Values

Handler = Callable[["FunctionTranslator", Op], str]

_SPIN = ("volatile", "acquire", "relaxed", "mmio", "cv", "cg", "try_wait", "test_wait")
_SPIN_ROOTS = ("atom", "nanosleep", "mbarrier")
_LONG_LOOP, _SPIN_STEP = 1 << 16, 1 << 10
"""A loop gives way after 65536 rounds; one that may wait for another thread after 64."""


@dataclass(slots=True)
class Site:
    """One place that touches memory or waits, by its number in the module."""

    kernel: str
    opcode: str
    location: Location | None


@dataclass(slots=True)
class ModuleContext:
    """What the functions of one module share."""

    symbols: dict[str, Symbol]
    functions: dict[str, int]
    """Device function to its number."""
    handlers: dict[str, Handler]
    shared: dict[str, Variable]
    """Module-level shared variables."""
    shared_base: int = 0
    """Static shared bytes that device functions use."""
    sites: list[Site] = field(default_factory=list)
    blocks: list[BasicBlock] = field(default_factory=list)


@dataclass(slots=True)
class TranslatedFunction:
    """C++ of one function and what its launch needs."""

    name: str
    cpp_name: str
    entry: bool
    code: str
    static_shared: int
    local_bytes: int
    registers: int
    parameters: tuple[tuple[int, int], ...]
    """Offset and size of each parameter."""
    calls: frozenset[str]
    waits: bool
    """Whether a loop of it may wait for other blocks."""
    uses_shared: bool
    ordered: bool
    """Whether its result may depend on the order of atomics."""


def aligned(offset: int, align: int) -> int:
    """Round an offset up."""
    return (offset + align - 1) // align * align if align > 1 else offset


class FunctionTranslator(Values):
    """Walks a function's statements; the families call back for values, sites and names."""

    def __init__(self, context: ModuleContext, function: Function, cpp_name: str) -> None:
        super().__init__()
        self.context = context
        self.function = function
        self.cpp_name = cpp_name
        self.calls: set[str] = set()
        self.waits = self.uses_shared = self.ordered = False
        self.branch_targets: dict[str, tuple[str, ...]] = {}
        self._declarations: list[str] = []
        self._lines: list[str] = []
        self._registers = 0
        self._local = 0
        self._static_shared = 0
        self._count = 0
        self._label_at: dict[str, int] = {}
        self._spins_at: list[int] = []
        self._labels: dict[str, int] = {}
        self._block: BasicBlock | None = None
        self._current: Instruction | None = None

    def translate(self) -> TranslatedFunction:
        """Return the function's C++.

        Raises:
            Unsupported: It uses something that is not known.
        """
        function = self.function
        if function.body is None:
            raise Unsupported(f"function {function.name} without a body")
        self._static_shared = self.context.shared_base
        layout = self._bind_parameters()
        self.scopes.append({})
        self._bind_scope(function.body)
        self._start_block()
        self._walk(function.body)
        return TranslatedFunction(
            name=function.name,
            cpp_name=self.cpp_name,
            entry=function.entry,
            code=self._assemble(),
            static_shared=aligned(self._static_shared, 16),
            local_bytes=self._local,
            registers=self._registers,
            parameters=layout,
            calls=frozenset(self.calls),
            waits=self.waits,
            uses_shared=self.uses_shared,
            ordered=self.ordered,
        )

    def signature(self) -> str:
        """Return the C++ declaration."""
        second = "const uint8_t* P_" if self.function.entry else "uint8_t** A_"
        return f"static void {self.cpp_name}(ks::Thread& t, {second})"

    def site(self) -> int:
        """Return a new site number for the instruction being translated."""
        assert self._current is not None
        site = Site(self.function.name, self._current.text, self._current.location)
        self.context.sites.append(site)
        if self._block is not None:
            self._block.sites.append((len(self.context.sites) - 1, Op.of(self._current)))
        return len(self.context.sites) - 1

    def jump(self, label: str) -> str:
        """Return the statement that goes to a label, giving way on long loops."""
        name = self._label_name(label)
        start = self._label_at.get(name)
        if start is None:
            return f"goto {name};"
        waits = any(at >= start for at in self._spins_at)
        self.waits |= waits
        step = _SPIN_STEP if waits else 1
        return (
            f"if (KS_UNLIKELY((spin_ += {step}u) >= {_LONG_LOOP}u)) "
            f"{{ spin_ = 0; ks::ks_spin(t, {self.site()}); }} goto {name};"
        )

    def _label_name(self, label: str) -> str:
        meaning = self.meaning(label)
        if not isinstance(meaning, Symbol) or meaning.space != "label":
            raise Unsupported(f"branch to {label}")
        return meaning.address

    def end_block(self) -> None:
        """Say that the instruction being translated ends its basic block."""
        self._block = None

    def _bind_parameters(self) -> tuple[tuple[int, int], ...]:
        layout: list[tuple[int, int]] = []
        names = self.scopes[0]
        names.update(self.context.symbols)
        if not self.function.entry:
            for number, variable in enumerate((*self.function.returns, *self.function.parameters)):
                if variable.space != "param":
                    raise Unsupported(f"register parameter {variable.name}")
                names[variable.name] = Symbol(f"((uint64_t)A_[{number}])", "param")
            return ()
        offset = 0
        for variable in self.function.parameters:
            bytes_ = size(variable.type) * max(1, variable.count) * variable.vector
            offset = aligned(offset, variable.align or min(size(variable.type) * variable.vector, 16))
            names[variable.name] = Symbol(f"((uint64_t)P_ + {offset}u)", "param")
            layout.append((offset, bytes_))
            offset += bytes_
        return tuple(layout)

    def _bind_scope(self, scope: Scope) -> None:
        """Enter the names of a scope: labels may be used before they stand there."""
        number = len(self._labels)
        for statement in scope.statements:
            if isinstance(statement, Variable):
                self._declare(statement)
            elif isinstance(statement, Label):
                name = f"L{number}_{len(self._labels)}"
                self._labels[name] = 0
                self.scopes[-1][statement.name] = Symbol(name, "label")
            elif isinstance(statement, BranchTargets):
                self.branch_targets[statement.name] = statement.labels
            elif isinstance(statement, Prototype):
                self.scopes[-1][statement.name] = Symbol("0", "prototype")

    def _declare(self, variable: Variable) -> None:
        names = self.scopes[-1]
        if variable.space == "reg":
            self._declare_registers(variable)
        elif variable.space == "local":
            self._local = aligned(self._local, max(variable.align, size(variable.type)))
            names[variable.name] = Symbol(f"((uint64_t)F_.base + {self._local}u)", "local")
            self._local += size(variable.type) * max(1, variable.count) * variable.vector
        elif variable.space == "shared":
            names[variable.name] = self._place_shared(variable)
        elif variable.space == "param":
            self._count += 1
            bytes_ = size(variable.type) * max(1, variable.count) * variable.vector
            self._declarations.append(f"alignas(16) uint8_t a{self._count}[{aligned(bytes_, 16)}];")
            names[variable.name] = Symbol(f"((uint64_t)a{self._count})", "param")
        else:
            raise Unsupported(f"variable {variable.name} in a function")

    def _place_shared(self, variable: Variable) -> Symbol:
        self.uses_shared = True
        if variable.external or (variable.is_array and variable.count == 0):
            return Symbol("((uint64_t)t.block->static_shared)", "shared")
        offset = aligned(self._static_shared, max(variable.align, size(variable.type)))
        self._static_shared = offset + size(variable.type) * variable.count * variable.vector
        return Symbol(f"{offset}ull", "shared")

    def _declare_registers(self, variable: Variable) -> None:
        if variable.vector > 1 or variable.type not in CPP:
            raise Unsupported(f"register type .{variable.type}")
        family = (
            [f"{variable.name}{n}" for n in range(variable.family)] if variable.family else [variable.name]
        )
        for name in family:
            self._count += 1
            self._registers += 1
            self.scopes[-1][name] = Register(f"r{self._count}", variable.type)
        first = self._count - len(family) + 1
        names = ", ".join(f"r{n} = 0" for n in range(first, self._count + 1))
        if names:
            self._declarations.append(f"{CPP[variable.type]} {names};")

    def meaning(self, name: str) -> Register | Symbol:
        """Also find shared variables of the module, which are placed on first use."""
        try:
            return super().meaning(name)
        except Unsupported:
            if name not in self.context.shared:
                raise
            self.scopes[0][name] = self._place_shared(self.context.shared[name])
            return self.scopes[0][name]

    def _walk(self, scope: Scope) -> None:
        for statement in scope.statements:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        if isinstance(statement, Scope):
            self.scopes.append({})
            self._bind_scope(statement)
            self._walk(statement)
            self.scopes.pop()
        elif isinstance(statement, Label):
            name = self._label_name(statement.name)
            self._label_at[name] = len(self._lines)
            self._lines.append(f"{name}:;")
            self._start_block(statement.name)
        elif isinstance(statement, Instruction):
            self._instruction(statement)

    def _start_block(self, label: str = "") -> None:
        blocks = self.context.blocks
        self._block = BasicBlock(self.function.name, label)
        blocks.append(self._block)
        self._lines.append(f"KS_BLOCK(t, {len(blocks) - 1});")

    def _instruction(self, instruction: Instruction) -> None:
        if self._block is None:
            self._start_block()
        assert self._block is not None
        self._current = instruction
        op = Op.of(instruction)
        handler = self.context.handlers.get(op.root)
        if handler is None:
            raise op.unsupported()
        if op.root in _SPIN_ROOTS or (op.root == "ld" and op.has(*_SPIN)):
            self._spins_at.append(len(self._lines))
        self._block.add(op)
        try:
            code = handler(self, op)
        except Unsupported as error:
            text = (
                error.what if error.what.startswith("instruction") else f"instruction {op.text}: {error.what}"
            )
            raise Unsupported(text, instruction.location) from error
        if instruction.guard is not None:
            negation = "!" if instruction.guard_negated else ""
            code = f"if ({negation}{self.value(Name(instruction.guard.text), 'pred')}) {{ {code} }}"
        self._lines.append(code)

    def _assemble(self) -> str:
        body = "\n".join(self._lines)
        declarations = "\n".join(self._declarations)
        frame = f"ks::Frame F_(t, {self._local}u, 0);\n" if self._local else ""
        return f"{self.signature()} {{\nuint32_t spin_ = 0; (void)spin_;\n{frame}{declarations}\n{body}\n}}\n"
