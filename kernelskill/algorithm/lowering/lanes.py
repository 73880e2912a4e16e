"""Combine the partial results of threads that share a loop."""

from __future__ import annotations

from kernelskill.algorithm.expression import Expression, Fold, Num, Reduce
from kernelskill.algorithm.integers import constant
from kernelskill.algorithm.lowering.context import Context
from kernelskill.algorithm.lowering.zeros import is_zero
from kernelskill.algorithm.model import IllegalMove
from kernelskill.algorithm.picks import Pick
from kernelskill.algorithm.schedule import Schedule
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
    return not (is_zero(reduction.initial) and reduction.op in ("+", "^"))


def combined_text(op: str, kind: str, first: str, second: str) -> str:
    """Return the expression that combines two partial results."""
    if op in ("fmax", "fmin"):
        function = {"double": op, "float": f"{op}f"}.get(kind, op[1:])
        return f"{function}({first}, {second})"
    if op in ("max", "min"):
        sign = ">" if op == "max" else "<"
        return f"{second} {sign} {first} ? {second} : {first}"
    return f"{first} {op} {second}"


def combine_lanes(context: Context, reduction: Reduce, target: str, start: str) -> None:
    """Write the statements after which every lane holds the whole result; `start` is taken in once."""
    function = lanes_function(context, reduction.op, reduction.kind)
    context.out.line(f"{target} = {function}({target});")
    if has_start(reduction):
        context.out.line(f"{target} = {combined_text(reduction.op, reduction.kind, start, target)};")


def combine_rows(context: Context, reduction: Reduce, name: str, rows: str) -> bool:
    """Write the statement after which every lane holds the whole results of all rows that it takes together.

    Lanes of several warps wait for one another, for all rows at once. False where they need not wait, or where
    each result takes its start in: nothing is written.

    Args:
        context: Of the kernel.
        reduction: What the lanes share.
        name: The array of a lane's partial results.
        rows: The constant that is its length.
    """
    schedule = context.schedule
    if schedule.lanes <= 32 or schedule.lanes_outer or has_start(reduction):
        return False
    op, kind = reduction.op, reduction.kind
    key = f"lanes {op} {kind} {schedule.lanes} of {rows}"
    if key not in context.helpers:
        context.helper_names[key] = context.names.fresh(f"lanes_{_WORDS.get(op, 'result')}s")
        context.helpers[key] = _rows_text(context, context.helper_names[key], op, kind, rows)
    context.out.line(f"{context.helper_names[key]}({name});")
    return True


def _rows_text(context: Context, name: str, op: str, kind: str, rows: str) -> str:
    """Return the function for lanes of several warps that take several rows together."""
    spelled, word = cuda_name(kind), _WORDS.get(op, "result")
    lanes, total = context.schedule.lanes, context.schedule.threads // 32
    each_row = f"for (int row = 0; row < {rows}; ++row)"
    return "\n".join(
        [
            f"// The {word} of each row over {lanes} neighbouring threads; each of them gets it. All threads of the block",
            "// call it.",
            f"__device__ __forceinline__ void {name}({spelled} (&values)[{rows}]) {{",
            f"    __shared__ {spelled} parts[{rows}][{total}];",
            "#pragma unroll",
            f"    {each_row} {{",
            "#pragma unroll",
            "        for (int step = 16; step > 0; step /= 2) {",
            f"            const {spelled} other = __shfl_xor_sync(0xffffffffu, values[row], step);",
            f"            values[row] = {combined_text(op, kind, 'values[row]', 'other')};",
            "        }",
            "    }",
            "    __syncthreads();  // the values of the last call are no longer needed",
            "#pragma unroll",
            f"    {each_row} {{",
            "        if (threadIdx.x % 32 == 0) parts[row][threadIdx.x / 32] = values[row];",
            "    }",
            "    __syncthreads();",
            f"    const int first = threadIdx.x / {lanes} * {lanes // 32};",
            "#pragma unroll",
            f"    {each_row} {{",
            "        values[row] = parts[row][first];",
            "#pragma unroll",
            f"        for (int warp = 1; warp < {lanes // 32}; ++warp) {{",
            f"            const {spelled} other = parts[row][first + warp];",
            f"            values[row] = {combined_text(op, kind, 'values[row]', 'other')};",
            "        }",
            "    }",
            "}",
            "",
        ]
    )


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


def pick_lanes(context: Context, fold: Fold, pick: Pick, targets: list[str]) -> None:
    """Write the call after which every lane holds what the whole loop picked."""
    types = [cuda_name(state.type) for state in fold.states]
    key = f"pick {pick} {types} {context.schedule.lanes}"
    if key not in context.helpers:
        name = context.names.fresh("lanes_pick")
        context.helper_names[key] = name
        context.helpers[key] = _pick_text(context, name, pick, types)
    context.out.line(f"{context.helper_names[key]}({', '.join(targets)});")


def _pick_text(context: Context, name: str, pick: Pick, types: list[str]) -> str:
    schedule = context.schedule
    lanes, width = schedule.lanes, schedule.threads // schedule.lanes
    parts = [f"state_{number}" for number in range(len(types))]
    parts[pick.value], parts[pick.step] = "value", "index"
    earlier = "<" if pick.op in ("<", ">") else ">"
    strict = pick.op[0]
    wins = f"other_value {strict} value || (other_value == value && other_index {earlier} index)"
    heads = ", ".join(f"{kind}& {part}" for kind, part in zip(types, parts, strict=True))
    take = ["{"] + [f"    {part} = other_{part};" for part in parts] + ["}"]
    lines = [
        f"// What {lanes} threads picked together; each of them gets it. All threads of the block call it.",
        f"__device__ __forceinline__ void {name}({heads}) {{",
    ]
    if not schedule.lanes_outer:
        lines += ["#pragma unroll", f"    for (int step = {min(lanes, 32) // 2}; step > 0; step /= 2) {{"]
        lines += [
            f"        const {kind} other_{part} = __shfl_xor_sync(0xffffffffu, {part}, step);"
            for kind, part in zip(types, parts, strict=True)
        ]
        lines += [f"        if ({wins}) {take[0]}", *(f"        {text}" for text in take[1:]), "    }"]
    if schedule.lanes_outer or lanes > 32:
        lines += _shared_pick(schedule, types, parts, wins, take, width)
    return "\n".join([*lines, "}", ""])


def _shared_pick(
    schedule: Schedule, types: list[str], parts: list[str], wins: str, take: list[str], width: int
) -> list[str]:
    """Return the part of a pick that goes through shared memory."""
    lanes = schedule.lanes
    if schedule.lanes_outer:
        count, place, first, step = lanes, "threadIdx.x", f"threadIdx.x % {width}", width
        total, leads = schedule.threads, ""
    else:
        count, total = lanes // 32, schedule.threads // 32
        place, first, step = "threadIdx.x / 32", f"threadIdx.x / {lanes} * {count}", 1
        leads = "if (threadIdx.x % 32 == 0) "
    named = list(zip(types, parts, strict=True))
    lines = [f"    __shared__ {kind} all_{part}[{total}];" for kind, part in named]
    lines.append("    __syncthreads();  // the values of the last call are no longer needed")
    lines += [f"    {leads}all_{part}[{place}] = {part};" for part in parts]
    lines += ["    __syncthreads();", f"    const int first = {first};"]
    lines += [f"    {part} = all_{part}[first];" for part in parts]
    lines.append(f"    for (int number = 1; number < {count}; ++number) {{")
    offset = f"number * {step}" if step > 1 else "number"
    lines += [f"        const {kind} other_{part} = all_{part}[first + {offset}];" for kind, part in named]
    return [*lines, f"        if ({wins}) {take[0]}", *(f"        {text}" for text in take[1:]), "    }"]
