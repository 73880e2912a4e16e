"""Other spellings of a kernel that mean the same: what a rewrite must survive or refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kernelskill.source.definitions import FunctionDef
from kernelskill.source.edits import EditSet
from kernelskill.source.masking import lexemes
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, named, walk
from kernelskill.source.unit import SourceUnit

_INDEX = "blockIdx.{0} * blockDim.{0} + threadIdx.{0}"


def variants(text: str) -> Iterator[tuple[str, str]]:
    """Yield the kernel as it is and every variant that differs from it, with its name."""
    yield "plain", text
    for name, change in _CHANGES.items():
        unit = SourceUnit.parse(text)
        edits = EditSet(unit)
        change(unit, edits)
        if edits:
            changed = edits.text()
            assert not SourceUnit.parse(changed).problems, (name, changed)
            yield name, changed


def _kernels(unit: SourceUnit) -> Iterator[FunctionDef]:
    for kernel in unit.kernels:
        if not kernel.is_opaque and kernel.body is not None:
            yield kernel


def _renamed(unit: SourceUnit, edits: EditSet) -> None:
    """Give every parameter and local variable of the kernels another name."""
    in_macros = {word for macro in unit.macros for word in _words(macro.possible)}
    for kernel in _kernels(unit):
        flow = flow_of(unit, kernel)
        declared = [*kernel.parameters, *kernel.locals]
        names: dict[int, str] = {}
        for number, entry in enumerate(declared):
            if entry.name and entry.name not in in_macros:
                names[id(entry)] = f"{entry.name[0]}_q{number}"
                edits.replace(entry.name_span, names[id(entry)])
        for node in walk(kernel.body) if kernel.body is not None else ():
            found = flow.resolve(node) if node.type == "identifier" else None
            if found is not None and id(found) in names and found.name_span.start != node.start_byte:
                edits.replace(node, names[id(found)])


def _words(text: str) -> list[str]:
    data = text.encode()
    return [data[t.start : t.end].decode() for t in lexemes(data) if t.kind == "word"]


def _wide(unit: SourceUnit, edits: EditSet) -> None:
    """Declare indices that start at a thread index as size_t."""
    for kernel in _kernels(unit):
        for variable in kernel.locals:
            kind = variable.declaration.child_by_field_name("type")
            alone = len(variable.declaration.children_by_field_name("declarator")) == 1
            value = variable.initialiser
            if (
                alone
                and kind is not None
                and value is not None
                and unit.text_of(kind) in ("int", "unsigned", "unsigned int")
                and variable.pointer_depth == 0
                and any(word in unit.text_of(value) for word in ("threadIdx", "blockIdx"))
            ):
                edits.replace(kind, "size_t")


def _guarded(unit: SourceUnit, edits: EditSet) -> None:
    """Return early where no thread ever is."""
    for kernel in _kernels(unit):
        first = _statements(kernel)[0]
        edits.insert_line_before(first, "if (threadIdx.x >= 1024u || blockDim.x == 0u) return;")


def _wrapped(unit: SourceUnit, edits: EditSet) -> None:
    """Put the work under one more test that always holds."""
    for kernel in _kernels(unit):
        last = _statements(kernel)[-1]
        if last.type in ("expression_statement", "if_statement", "for_statement"):
            edits.insert_before(last, "if (blockDim.x > 0u) { ")
            edits.insert_after(last, " }")


def _macros(unit: SourceUnit, edits: EditSet) -> None:
    """Write global indices as uses of a macro."""
    used = False
    for kernel in _kernels(unit):
        for node in walk(kernel.body) if kernel.body is not None else ():
            for axis in "xyz":
                same = " ".join(unit.text_of(node).split()) == _INDEX.format(axis)
                if node.type == "binary_expression" and same:
                    edits.replace(node, f"GLOBAL_INDEX({axis})")
                    used = True
    if used:
        body = _INDEX.replace("{0}", "axis")
        edits.insert_before(unit.kernels[0].span, f"#define GLOBAL_INDEX(axis) ({body})\n")


def _commented(unit: SourceUnit, edits: EditSet) -> None:
    """Put comments with brackets and code in them where none is expected."""
    for kernel in _kernels(unit):
        for node in walk(kernel.body) if kernel.body is not None else ():
            if node.child_count or _is_in_directive(node):
                continue
            if node.type in ("(", "[", ","):
                edits.insert_after(node, "/* ]) x[i] */ ")
            elif node.type in ("=", "+", "*") and node.parent is not None:
                edits.insert_before(node, "/* ; } */")
            elif node.type == "{":
                edits.insert_after(node, " // { for (;;)\n")


def _is_in_directive(node: Node) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.type.startswith("preproc"):
            return True
        parent = parent.parent
    return False


def _braced(unit: SourceUnit, edits: EditSet) -> None:
    """Give every body that is a single statement its braces, all on one line."""
    for kernel in _kernels(unit):
        for node in walk(kernel.body) if kernel.body is not None else ():
            body = node.child_by_field_name("body" if node.type == "for_statement" else "consequence")
            single = body is not None and body.type != "compound_statement"
            if body is not None and single and node.type in ("for_statement", "if_statement"):
                edits.insert_before(body, "{ ")
                edits.insert_after(body, " }")


def _statements(kernel: FunctionDef) -> list[Node]:
    return named(kernel.body) if kernel.body is not None else []


_CHANGES: dict[str, Callable[[SourceUnit, EditSet], None]] = {
    "renamed": _renamed,
    "wide": _wide,
    "guarded": _guarded,
    "wrapped": _wrapped,
    "macros": _macros,
    "commented": _commented,
    "braced": _braced,
}
