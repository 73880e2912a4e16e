"""What every step of a loop would compute or read again is done once before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelskill.algorithm.access import certain_loads
from kernelskill.algorithm.expression import Expression, Fold, Load, Loop, Num, Poly, Reduce, Sym
from kernelskill.algorithm.integers import compared, value_of
from kernelskill.algorithm.lowering.context import Context
from kernelskill.algorithm.lowering.fill import zero_of
from kernelskill.algorithm.lowering.holding import unheld_loads
from kernelskill.algorithm.lowering.values import is_slow, print_values
from kernelskill.algorithm.types import cuda_name


def hold_invariants(
    context: Context, values: Sequence[Expression], loops: Sequence[Loop], states: Sequence[str] = ()
) -> list[Expression]:
    """Write what is the same in every step into registers, and return it; `context.values` holds the names.

    Elements are read only where a step would read them.

    Args:
        context: The lowering.
        values: What a step evaluates.
        loops: The loops, opened after this.
        states: What else changes from step to step.
    """
    names = (*(loop.name for loop in loops), *states)
    bounds = [bound for loop in loops for bound in (loop.lower, loop.upper)]
    if any(bound.depends_on(*names) or unheld_loads(context, [bound]) for bound in bounds):
        return []
    runs = [compared("<", loop.lower, loop.upper) for loop in loops]
    tests = [context.show(test, 3) for test in runs if value_of(test) != 1]
    if context.active:
        tests.insert(0, context.active)
    held = list(dict.fromkeys(e for value in values for e in _invariant(context, value, value, names)))
    hints = dict(context.algorithm.names)
    for each in held:
        printed = print_values(context, [each])
        context.out.lines(printed.declarations)
        text = printed.texts[0]
        if tests and unheld_loads(context, [each]):
            text = f"{' && '.join(tests)} ? {text} : {zero_of(each.type)}"
        base = hints.get(each) or (f"{each.buffer}_value" if isinstance(each, Load) else "fixed")
        name = context.names.fresh(base)
        kind = context.index_type if isinstance(each, Poly) else cuda_name(each.type)
        context.out.line(f"const {kind} {name} = {text};")
        context.values[each] = name
    return held


def _invariant(
    context: Context, node: Expression, value: Expression, names: Sequence[str]
) -> Iterator[Expression]:
    """Yield the largest parts of a value that are the same in every step and cost something."""
    if context.leaf(node) is not None or isinstance(node, Sym | Num | Reduce | Fold):
        return
    if not node.depends_on(*names) and node.type != "bool" and not context.dims_of(node):
        inside = list(_printed(context, node))
        reads = [each for each in inside if isinstance(each, Load)]
        is_plain = not any(isinstance(each, Reduce | Fold) for each in inside)
        certain = certain_loads(value)
        # What is declared along the way must not read either where no step does.
        is_alone = not reads or node in reads
        if is_plain and is_alone and all(read in certain for read in reads):
            if reads or any(is_slow(each) for each in inside):
                yield node
            return
    for child in node.children:
        yield from _invariant(context, child, value, names)


def _printed(context: Context, node: Expression) -> Iterator[Expression]:
    if context.leaf(node) is not None:
        return
    yield node
    for child in node.children:
        yield from _printed(context, child)
