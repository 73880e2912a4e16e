"""A PTX module to one C++ file and the facts that go with it."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.backends.emulated.ptx.syntax import (
    Float,
    Function,
    Instruction,
    Integer,
    Location,
    Module,
    Name,
    Operand,
    Scope,
    Sum,
    Variable,
)
from kernelskill.backends.emulated.translate import (
    asynchronous,
    atomics,
    control,
    conversion,
    floating,
    integer,
    memory,
    tensor,
    warp,
)
from kernelskill.backends.emulated.translate.function import (
    FunctionTranslator,
    Handler,
    ModuleContext,
    TranslatedFunction,
    aligned,
)
from kernelskill.backends.emulated.translate.refusal import Unsupported
from kernelskill.backends.emulated.translate.types import CPP, size
from kernelskill.backends.emulated.translate.values import Symbol

HANDLERS: dict[str, Handler] = {
    **integer.HANDLERS,
    **floating.HANDLERS,
    **memory.HANDLERS,
    **conversion.HANDLERS,
    **control.HANDLERS,
    **warp.HANDLERS,
    **atomics.HANDLERS,
    **asynchronous.HANDLERS,
    **tensor.HANDLERS,
}

_STACK_BYTES = 16 * 1024
"""Local memory of a thread for device functions that call each other."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A kernel that cannot be translated, and why."""

    reason: str
    location: Location | None


@dataclass(frozen=True, slots=True)
class Translation:
    """C++ of a module, its kernels, and the kernels that were refused."""

    code: str
    kernels: tuple[TranslatedFunction, ...]
    refused: dict[str, Refused]
    context: ModuleContext
    variables: tuple[Variable, ...]
    headers: tuple[str, ...]


def translate_module(module: Module) -> Translation:
    """Translate every kernel that can be; name the rest."""
    return _ModuleTranslator(module).translate()


def _used_names(scope: Scope) -> set[str]:
    names: set[str] = set()
    for statement in scope.statements:
        if isinstance(statement, Scope):
            names |= _used_names(statement)
        elif isinstance(statement, Instruction):
            for operand in statement.operands:
                base = getattr(operand, "base", operand)
                if isinstance(base, Name):
                    names.add(base.text)
    return names


class _ModuleTranslator:
    def __init__(self, module: Module) -> None:
        self._module = module
        wanted = [v for v in module.variables if v.space in ("global", "const") and v.type in CPP]
        self._variables = _with_known_values(wanted, {f.name for f in module.functions})
        self._shared = {v.name: v for v in module.variables if v.space == "shared" and v.type in CPP}
        self._functions = [f for f in module.functions if f.body is not None and not f.entry]
        self._device: dict[str, TranslatedFunction] = {}
        self._refused: dict[str, Refused] = {}

    def translate(self) -> Translation:
        context = ModuleContext(
            symbols={v.name: Symbol(f"V_[{n}]", v.space) for n, v in enumerate(self._variables)},
            functions={f.name: n for n, f in enumerate(self._functions, start=1)},
            handlers=HANDLERS,
            shared=self._shared,
            shared_base=self._shared_of_functions(),
        )
        for function in self._functions:
            self._one(context, function, f"d{context.functions[function.name]}", self._device)
        kernels: dict[str, TranslatedFunction] = {}
        entries = [f for f in self._module.functions if f.entry and f.body is not None]
        for number, function in enumerate(entries):
            self._one(context, function, f"k{number}", kernels)
        usable = [kernel for kernel in kernels.values() if not self._refuse_calls(kernel)]
        usable = [self._with_callees(kernel) for kernel in usable]
        return Translation(
            code=self._assemble(context, usable),
            kernels=tuple(usable),
            refused={name: reason for name, reason in self._refused.items() if name not in self._device},
            context=context,
            variables=self._variables,
            headers=_headers(usable, self._device),
        )

    def _shared_of_functions(self) -> int:
        """Give module-level shared variables that device functions use one place for all kernels."""
        offset = 0
        used: set[str] = set()
        for function in self._functions:
            assert function.body is not None
            used |= _used_names(function.body)
        for name, variable in self._shared.items():
            if name in used and variable.count and not variable.external:
                offset = aligned(offset, max(variable.align, size(variable.type)))
                offset += size(variable.type) * variable.count
        return aligned(offset, 16)

    def _one(
        self, context: ModuleContext, function: Function, cpp_name: str, into: dict[str, TranslatedFunction]
    ) -> None:
        names = dict(context.symbols)
        translator = FunctionTranslator(context, function, cpp_name)
        if not function.entry or self._functions:
            self._bind_common_shared(translator)
        try:
            into[function.name] = translator.translate()
        except Unsupported as error:
            self._refused[function.name] = Refused(error.what, error.location)
        context.symbols.update(names)

    def _bind_common_shared(self, translator: FunctionTranslator) -> None:
        offset = 0
        used: set[str] = set()
        for function in self._functions:
            assert function.body is not None
            used |= _used_names(function.body)
        for name, variable in self._shared.items():
            if name in used and variable.count and not variable.external:
                offset = aligned(offset, max(variable.align, size(variable.type)))
                translator.scopes[0][name] = Symbol(f"{offset}ull", "shared")
                offset += size(variable.type) * variable.count

    def _reachable(self, kernel: TranslatedFunction) -> set[str]:
        found: set[str] = set()
        todo = list(kernel.calls)
        while todo:
            name = todo.pop()
            names = [f.name for f in self._functions] if name == "*" else [name]
            for each in names:
                if each not in found:
                    found.add(each)
                    todo.extend(self._device[each].calls if each in self._device else ())
        return found

    def _refuse_calls(self, kernel: TranslatedFunction) -> bool:
        for name in sorted(self._reachable(kernel)):
            if name in self._refused:
                self._refused[kernel.name] = self._refused[name]
                return True
        return False

    def _with_callees(self, kernel: TranslatedFunction) -> TranslatedFunction:
        callees = [self._device[name] for name in self._reachable(kernel)]
        if not callees:
            return kernel
        kernel.local_bytes += sum(aligned(c.local_bytes, 16) + 64 for c in callees) + _STACK_BYTES
        kernel.registers += sum(c.registers for c in callees)
        kernel.waits |= any(c.waits for c in callees)
        kernel.uses_shared |= any(c.uses_shared for c in callees)
        kernel.ordered |= any(c.ordered for c in callees)
        return kernel

    def _assemble(self, context: ModuleContext, kernels: list[TranslatedFunction]) -> str:
        parts = [f'#include "{header}"' for header in _headers(kernels, self._device)]
        parts.append(f"static uint64_t V_[{max(1, len(self._variables))}];")
        parts.extend(f"static void d{n}(ks::Thread&, uint8_t**);" for n in context.functions.values())
        count = len(context.functions)
        table = ", ".join(f"d{n}" for n in context.functions.values())
        parts.append(f"static constexpr uint64_t kFunctions = {count};")
        parts.append(f"static void (*const functions_[])(ks::Thread&, uint8_t**) = {{nullptr, {table}}};")
        for name, number in context.functions.items():
            function = self._device.get(name)
            parts.append(function.code if function else f"static void d{number}(ks::Thread&, uint8_t**) {{}}")
        parts.extend(kernel.code for kernel in kernels)
        parts.append(_kernel_table(kernels))
        parts.append(self._variable_table(context))
        return "\n".join(parts) + "\n"

    def _variable_table(self, context: ModuleContext) -> str:
        parts: list[str] = []
        rows: list[str] = []
        relocations: list[str] = []
        numbers = {v.name: n for n, v in enumerate(self._variables)}
        for n, variable in enumerate(self._variables):
            bytes_ = size(variable.type) * max(1, variable.count) * variable.vector
            initial = _initial_bytes(variable, context.functions, numbers, n, relocations)
            if initial:
                digits = ",".join(map(str, initial))
                parts.append(f"static const uint8_t init{n}[] = {{{digits}}};")
            align = max(variable.align, size(variable.type))
            space = 3 if variable.space == "const" else 0
            pointer = f"init{n}" if initial else "nullptr"
            rows.append(
                f'{{"{variable.name}", {bytes_}u, {align}u, {space}, {pointer}, {len(initial)}u, &V_[{n}]}},'
            )
        parts.append(f'extern "C" const ks::VariableEntry ks_variables[] = {{{" ".join(rows)} {{}}}};')
        body = " ".join(f"{{{row}}}," for row in relocations)
        parts.append(f'extern "C" const ks::RelocationEntry ks_relocations[] = {{{body} {{~0u, 0, 0, 0}}}};')
        return "\n".join(parts)


def _with_known_values(variables: list[Variable], functions: set[str]) -> tuple[Variable, ...]:
    """Drop variables whose first value cannot be made; what uses them is refused by their name."""
    kept = list(variables)
    while True:
        names = {variable.name for variable in kept}
        fine = [v for v in kept if all(_known_value(value, v, names | functions) for value in v.initial)]
        if len(fine) == len(kept):
            return tuple(kept)
        kept = fine


def _known_value(value: Operand, variable: Variable, names: set[str]) -> bool:
    if isinstance(value, Name):
        return value.text in names and size(variable.type) == 8
    if isinstance(value, Sum):
        return value.base.text in names and size(variable.type) == 8
    return isinstance(value, Integer) or (isinstance(value, Float) and value.width == 8 * size(variable.type))


def _kernel_table(kernels: list[TranslatedFunction]) -> str:
    rows = " ".join(
        f'{{"{k.name}", {k.cpp_name}, {k.static_shared}u, {k.local_bytes}u, {k.registers}u, {int(k.waits)}u}},'
        for k in kernels
    )
    return f'extern "C" const ks::KernelEntry ks_kernels[] = {{{rows} {{}}}};'


def _headers(kernels: list[TranslatedFunction], device: dict[str, TranslatedFunction]) -> tuple[str, ...]:
    """Include only what is used: the compiler's time counts in every build."""
    code = "".join(k.code for k in kernels) + "".join(d.code for d in device.values())
    headers = ["ks_device.h", "ks_math.h"]
    if "ks::F16" in code or "ks::Bf16" in code or "f32x2" in code or "E4m3" in code or "E5m2" in code:
        headers.append("ks_half.h")
    if any(f"ks::{name}" in code for name in ("shuffle_", "vote_", "match_", "redux_", "elect")):
        headers.append("ks_warp.h")
    if "Atomic<" in code:
        headers.append("ks_atomic.h")
    if "ks::mma" in code or "ks::load_matrix" in code or "ks::wmma" in code:
        headers.append("ks_tensor.h")
    if "ks::mbarrier" in code or "ks::copy_async" in code:
        headers.append("ks_async.h")
    return tuple(headers)


def _initial_bytes(
    variable: Variable,
    functions: dict[str, int],
    numbers: dict[str, int],
    number: int,
    relocations: list[str],
) -> bytes:
    """Return a variable's first bytes; addresses of variables go to the relocations."""
    data = bytearray()
    step = size(variable.type)
    for value in variable.initial:
        if isinstance(value, Integer):
            data += (value.value & ((1 << 8 * step) - 1)).to_bytes(step, "little")
        elif isinstance(value, Float):
            data += value.bits.to_bytes(step, "little")
        elif isinstance(value, Name | Sum):
            name, addend = (value.text, 0) if isinstance(value, Name) else (value.base.text, value.offset)
            if name in functions:
                data += functions[name].to_bytes(step, "little")
            elif name in numbers and step == 8:
                relocations.append(f"{number}u, {len(data)}u, {numbers[name]}u, {addend}u")
                data += bytes(step)
            else:
                raise Unsupported(f"initial value {name} of variable {variable.name}")
        else:
            raise Unsupported(f"initial value of variable {variable.name}")
    return bytes(data)


def cpp_types() -> frozenset[str]:
    """Return the PTX types that can be held."""
    return frozenset(CPP)
