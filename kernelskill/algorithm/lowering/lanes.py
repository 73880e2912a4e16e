"""Combine the partial results of threads that share a loop."""

from __future__ import annotations

from kernelskill.algorithm.expression import Expression, Num, Reduce
from kernelskill.algorithm.integers import constant, value_of
from kernelskill.algorithm.lowering.context import Context
from kernelskill.algorithm.model import IllegalMove
from kernelskill.algorithm.types import cuda_name, is_float

_IDEMPOTENT = frozenset({"fmax", "fmin", "max", "min", "&", "|", "&&", "||"})
_WORDS = {
    "+": "sum",
    "*": "product",
    "fmax": "maximum",
    "max": "maximum",
    "fmin": "minimum",
    "min": "minimum",
}


def neutral_of(reduction: Reduce) -> Expression:
    """Return what each of several partial accumulators starts with.

    Where taking a value twice changes nothing, that is the start itself.
    """
    if reduction.op in _IDEMPOTENT:
        return reduction.initial
    one_or_zero = 1 if reduction.op == "*" else 0
    if not is_float(reduction.kind):
        return constant(one_or_zero, reduction.kind)
    text = f"{one_or_zero}.0" + ("f" if reduction.kind == "float" else "")
    return Num(text, reduction.kind)


def has_start(reduction: Reduce) -> bool:
    """Whether the start must be taken in once after partial results are combined."""
    if reduction.op in _IDEMPOTENT:
        return False
    if value_of(reduction.initial) == 0 and reduction.op in ("+", "^"):
        return False
    if isinstance(reduction.initial, Num) and reduction.op == "+":
        return reduction.initial.text.rstrip("fF") not in ("0", "0.", "0.0")
    return True


def combined_text(op: str, kind: str, first: str, second: str) -> str:
    """Return the expression that combines two partial results."""
    if op in ("fmax", "fmin"):
        function = {"double": op, "float": f"{op}f"}.get(kind, op[1:])
        return f"{function}({first}, {second})"
    if op in ("max", "min"):
        sign = ">" if op == "max" else "<"
        return f"{second} {sign} {first} ? {second} : {first}"
    return f"{first} {op} {second}"


def combine_lanes(context: Context, reduction: Reduce, target: str) -> None:
    """Write the statements after which every lane holds the whole result."""
    function = lanes_function(context, reduction.op, reduction.kind)
    context.out.line(f"{target} = {function}({target});")
    if has_start(reduction):
        start = context.show(reduction.initial, 9)
        context.out.line(f"{target} = {combined_text(reduction.op, reduction.kind, start, target)};")


def lanes_function(context: Context, op: str, kind: str) -> str:
    """Return the name of a device function that combines a value over the lanes of a group."""
    lanes = context.schedule.lanes
    key = f"lanes {op} {kind} {lanes}"
    if key not in context.helpers:
        if kind in ("bool",):
            raise IllegalMove("flags are not combined over lanes")
        word = _WORDS.get(op, "result")
        name = context.names.fresh(f"lanes_{word}")
        context.helper_names[key] = name
        context.helpers[key] = _function_text(context, name, op, kind, lanes)
    return context.helper_names[key]


def _outer_text(context: Context, name: str, op: str, kind: str, lanes: int) -> str:
    """Return the function for lanes that lie a row of points apart."""
    spelled, word = cuda_name(kind), _WORDS.get(op, "result")
    width = context.schedule.threads // lanes
    return "\n".join(
        [
            f"// The {word} over the {lanes} threads of each point; each gets it. All threads of the block call it.",
            f"__device__ __forceinline__ {spelled} {name}({spelled} value) {{",
            f"    __shared__ {spelled} parts[{lanes}][{width}];",
            f"    const int point = threadIdx.x % {width};",
            "    __syncthreads();  // the values of the last call are no longer needed",
            f"    parts[threadIdx.x / {width}][point] = value;",
            "    __syncthreads();",
            "    value = parts[0][point];",
            f"    for (int lane = 1; lane < {lanes}; ++lane) {{",
            f"        const {spelled} other = parts[lane][point];",
            f"        value = {combined_text(op, kind, 'value', 'other')};",
            "    }",
            "    return value;",
            "}",
            "",
        ]
    )


def _function_text(context: Context, name: str, op: str, kind: str, lanes: int) -> str:
    if context.schedule.lanes_outer:
        return _outer_text(context, name, op, kind, lanes)
    spelled = cuda_name(kind)
    within = min(lanes, 32)
    word = _WORDS.get(op, "result")
    lines = [
        f"// The {word} over {lanes} neighbouring threads; each of them gets it. All threads of the block call it.",
        f"__device__ __forceinline__ {spelled} {name}({spelled} value) {{",
        "#pragma unroll",
        f"    for (int step = {within // 2}; step > 0; step /= 2) {{",
        f"        const {spelled} other = __shfl_xor_sync(0xffffffffu, value, step);",
        f"        value = {combined_text(op, kind, 'value', 'other')};",
        "    }",
    ]
    if lanes > 32:
        warps = lanes // 32
        total = context.schedule.threads // 32
        lines += [
            f"    __shared__ {spelled} parts[{total}];",
            "    __syncthreads();  // the values of the last call are no longer needed",
            "    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;",
            "    __syncthreads();",
            f"    const int first = threadIdx.x / {lanes} * {warps};",
            "    value = parts[first];",
            "#pragma unroll",
            f"    for (int warp = 1; warp < {warps}; ++warp) {{",
            f"        const {spelled} other = parts[first + warp];",
            f"        value = {combined_text(op, kind, 'value', 'other')};",
            "    }",
        ]
    return "\n".join([*lines, "    return value;", "}", ""])
