"""The atomics of a kernel: what they combine, where, and whether they may be done later or together."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelskill.skills.combining import Combining, read_combining
from kernelskill.skills.device_code import refuse_words
from kernelskill.skills.disjoint import separate
from kernelskill.skills.expression_types import ExpressionTypes, called_name, plain_type
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.loop_effects import refuse_hidden_accesses
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.accesses import Access, AccessMode, find_accesses
from kernelskill.source.declarations import ParameterDef, Storage, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.influence import BUILTINS, MEMORY, influences
from kernelskill.source.scopes import LOOPS, flow_of
from kernelskill.source.syntax import Node, ancestors, named, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_ORDER = "what other threads see would come in another order"
ORDERING_WORDS = frozenset(
    {"volatile", "__threadfence", "__threadfence_block", "__threadfence_system", "atomicCAS", "atomicExch"}
    | {"atomicInc", "atomicDec", "cuda", "atomic_ref", "__nanosleep", "asm", "__asm__", "cooperative_groups"}
)
"""Words that tell of an order among atomics, which must then stay as it is."""
_THREADS = frozenset(f"threadIdx.{axis}" for axis in "xyz")


@dataclass(frozen=True, eq=False)
class AtomicUpdate:
    """One call of an atomic that combines a value into an element."""

    name: str
    """The function that is called."""
    combining: Combining
    address: Node = field(repr=False)
    value: Node = field(repr=False)
    call: Node = field(repr=False)
    access: Access = field(repr=False)
    type_text: str
    """Type of the element, as the source may spell it."""
    is_statement: bool
    """Whether the old value is not used."""

    @property
    def index(self) -> Node | None:
        """The index of `&bins[i]` and `bins + i`, where there is one."""
        return self.access.indices[0] if len(self.access.indices) == 1 else None


def find_updates(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[AtomicUpdate]:
    """Return the atomics of a kernel.

    Raises:
        SkillRefused: There are others than simple combinations, or some may hide in functions.
    """
    calls = [node for node in walk(kernel.node) if node.type == "call_expression"]
    if not any(called_name(unit, call).startswith("atomic") for call in calls):
        raise SkillRefused("it has no atomics")
    refuse_words(unit, kernel, context, ORDERING_WORDS, _ORDER)
    if kernel.body is not None:
        refuse_hidden_accesses(unit, kernel, kernel.body, context)
    types = ExpressionTypes(unit, kernel, template_bindings(unit, kernel, context))
    accesses = {access.node.id: access for access in find_accesses(unit, kernel)}
    return [
        _read_update(unit, call, types, accesses)
        for call in calls
        if called_name(unit, call).startswith("atomic")
    ]


def _read_update(
    unit: SourceUnit, call: Node, types: ExpressionTypes, accesses: dict[int, Access]
) -> AtomicUpdate:
    name = called_name(unit, call)
    line = unit.line_of(call)
    listed = call.child_by_field_name("arguments")
    arguments = named(listed) if listed is not None else []
    kind = types.of(arguments[0]) if arguments else None
    combining = read_combining(name, plain_type(kind[:-1])) if kind and kind.endswith("*") else None
    if combining is None or len(arguments) != 2 or arguments[0].id not in accesses:
        raise SkillRefused(f"line {line}: {name!r} on {kind or 'an unknown type'} is not known here")
    parent = call.parent
    return AtomicUpdate(
        name=name,
        combining=combining,
        address=arguments[0],
        value=arguments[1],
        call=call,
        access=accesses[arguments[0].id],
        type_text=combining.kind,
        is_statement=parent is not None and parent.type == "expression_statement",
    )


def converted_value(unit: SourceUnit, kernel: KernelDef, update: AtomicUpdate, context: SkillContext) -> str:
    """Return the text of the value in the type of the element, its sign turned where it is subtracted."""
    types = ExpressionTypes(unit, kernel, template_bindings(unit, kernel, context))
    text = unit.text_of(update.value)
    simple = update.value.type in ("identifier", "number_literal", "subscript_expression", "call_expression")
    if types.of(update.value) != update.combining.kind:
        is_plain = update.value.type == "number_literal" and text.isdigit()
        if not is_plain:
            text, simple = f"({update.type_text})" + (text if simple else f"({text})"), True
    if update.name == "atomicSub":
        return f"-{text}" if simple else f"-({text})"
    return text


def address_parts(unit: SourceUnit, address: Node) -> list[Node]:
    """Return the base and the indices that an address is made of; the address itself where it has none."""
    inner = strip_parentheses(address)
    if inner.type != "pointer_expression" or unit.operator(inner) != "&":
        return [inner]
    element = inner.child_by_field_name("argument")
    parts: list[Node] = []
    while element is not None and element.type == "subscript_expression":
        listed = element.child_by_field_name("indices")
        parts += named(listed) if listed is not None else []
        element = element.child_by_field_name("argument")
    return [*parts, element] if element is not None else [inner]


def refuse_moving_address(
    unit: SourceUnit, kernel: KernelDef, address: Node, before: int, *, everywhere: bool = False
) -> None:
    """Decline an address that is not the same for all of a block's threads, all through the kernel.

    Args:
        unit: The file.
        kernel: The kernel.
        address: An expression of it.
        before: Byte offset; variables in the address must be declared in the outermost block before it.
        everywhere: Whether they may be declared in any block.

    Raises:
        SkillRefused: It may differ.
    """
    text = unit.text_of(address)
    for part in address_parts(unit, address):
        if _is_device_variable(unit, kernel, part):
            continue
        met = influences(flow_of(unit, kernel), part, unit.syntax, part)
        if met & _THREADS:
            raise SkillRefused(f"the threads of a block update different elements, {text}")
        if MEMORY in met or any(node.type == "call_expression" for node in walk(part)):
            raise SkillRefused(f"which element {text} is depends on data")
        for node in walk(part):
            if node.type == "identifier" and unit.text_of(node) not in BUILTINS:
                _refuse_changing_name(unit, kernel, node, text, None if everywhere else before)


def _refuse_changing_name(
    unit: SourceUnit, kernel: KernelDef, name: Node, text: str, before: int | None
) -> None:
    flow = flow_of(unit, kernel)
    declared = flow.resolve(name)
    if declared is None:
        return
    if not flow.is_constant(declared):
        raise SkillRefused(f"{declared.name!r} changes which element {text} is")
    if isinstance(declared, ParameterDef) or declared.scope.type == "translation_unit":
        return
    if before is None:
        return
    if declared.scope != kernel.body or declared.name_span.start > before:
        raise SkillRefused(f"{declared.name!r} of {text} is not known to all threads")


def _is_device_variable(unit: SourceUnit, kernel: KernelDef, part: Node) -> bool:
    """Whether an expression names a variable or array of the device, whose address is fixed."""
    declared = flow_of(unit, kernel).resolve(part) if part.type == "identifier" else None
    fixed = isinstance(declared, VariableDef) and declared.storage is Storage.DEVICE
    return fixed and isinstance(declared, VariableDef) and not declared.pointer_depth


def refuse_observers(
    unit: SourceUnit, kernel: KernelDef, updates: list[AtomicUpdate], context: SkillContext
) -> tuple[str, ...]:
    """Decline where a thread may see that its atomics are done later than they stand; return assumptions.

    What other threads see without an atomic of their own is a race in the original as well.

    Raises:
        SkillRefused: It may.
    """
    own = {update.access.node.id for update in updates}
    assumptions: list[str] = []
    for update in updates:
        for other in find_accesses(unit, kernel):
            if other.node.id in own or not (other.is_global or other.root is None):
                continue
            answer = separate(unit, kernel, update.access, other, context)
            if answer.disjoint:
                assumptions += [answer.assumption] if answer.assumption else []
            elif other.mode is AccessMode.ATOMIC or other.root is update.access.root:
                text = unit.text_of(other.node)
                raise SkillRefused(f"line {other.line} uses {text}, which line {update.access.line} updates")
            elif _may_follow(update.call, other.node):
                text = unit.text_of(other.node)
                raise SkillRefused(
                    f"line {other.line} may see in {text} what line {update.access.line} has updated before"
                )
        for second in updates:
            same = second.combining.name == update.combining.name
            if not same and not separate(unit, kernel, update.access, second.access, context).disjoint:
                raise SkillRefused(f"{update.name} and {second.name} may update one element")
    return tuple(dict.fromkeys(assumptions))


def _may_follow(first: Node, second: Node) -> bool:
    """Whether a thread may evaluate the second after the first."""
    if second.start_byte >= first.end_byte:
        return True
    inside = {node.id for node in ancestors(first) if node.type in LOOPS}
    return any(node.id in inside for node in ancestors(second))


def is_once_a_block(unit: SourceUnit, kernel: KernelDef, update: AtomicUpdate) -> bool:
    """Whether only one thread of a block, or of a warp, does the update, as after a reduction."""
    flow = flow_of(unit, kernel)
    for node in ancestors(update.call):
        if node.type != "if_statement":
            continue
        condition = node.child_by_field_name("condition")
        for test in walk(condition) if condition is not None else ():
            equal = test.type == "binary_expression" and unit.operator(test) == "=="
            negated = test.type == "unary_expression" and unit.operator(test) == "!"
            met = influences(flow, test, unit.syntax, test) if equal or negated else frozenset()
            if met & _THREADS and MEMORY not in met:
                return True
    return False
