"""Recursive descent over PTX tokens into a `Module`."""

from __future__ import annotations

from kernelskill.backends.emulated.ptx.cursor import Cursor
from kernelskill.backends.emulated.ptx.lexer import Token, tokenize
from kernelskill.backends.emulated.ptx.syntax import (
    BranchTargets,
    Function,
    Instruction,
    Integer,
    Label,
    Location,
    Module,
    Name,
    Operand,
    Prototype,
    PtxError,
    Scope,
    Statement,
    Sum,
    Variable,
)

_LINKING = (".visible", ".extern", ".weak", ".common")
_SPACES = (".reg", ".param", ".local", ".shared", ".global", ".const")
_DEEPEST = 32
_LARGEST = 1 << 40


def parse(text: str) -> Module:
    """Parse a PTX module.

    Raises:
        PtxError: The text is not PTX that this parser can read.
    """
    return _Parser(Cursor(tokenize(text))).module()


class _Parser:
    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._location: Location | None = None
        self._places: dict[tuple[int, int, int], Location] = {}

    def module(self) -> Module:
        module = Module()
        while self._cursor.token.kind != "end":
            self._item(module)
        return module

    def _item(self, module: Module) -> None:
        cursor = self._cursor
        external = False
        while cursor.token.text in _LINKING:
            external |= cursor.take().text == ".extern"
        token = cursor.take()
        if token.text in (".entry", ".func"):
            module.functions.append(self._function(token.text == ".entry"))
        elif token.text in (".global", ".const", ".shared"):
            module.variables.extend(self._declaration(token.text[1:], external))
        elif token.text == ".pragma":
            cursor.skip_statement()
        else:
            self._header(module, token)

    def _header(self, module: Module, token: Token) -> None:
        cursor = self._cursor
        match token.text:
            case ".version":
                module.version = cursor.take().text
            case ".target":
                module.target = cursor.take().text
                while cursor.accept(","):
                    cursor.take()
            case ".address_size":
                if cursor.integer() != 64:
                    raise PtxError("only 64-bit addresses are known", token.line)
            case ".file":
                self._file(module)
            case ".section":
                cursor.take()
                cursor.skip_braces()
            case ".alias":
                name = cursor.word()
                cursor.expect(",")
                module.aliases[name] = cursor.word()
                cursor.expect(";")
            case ";":
                pass
            case _:
                raise PtxError(f"unexpected {token.text!r} between functions", token.line)

    def _file(self, module: Module) -> None:
        cursor = self._cursor
        number = cursor.integer()
        if cursor.token.kind != "string":
            raise cursor.error("expected a file name")
        module.files[number] = cursor.take().text[1:-1]
        while cursor.accept(","):
            cursor.take()

    def _function(self, entry: bool) -> Function:
        cursor = self._cursor
        line = cursor.token.line
        returns = self._parameters() if cursor.token.text == "(" else ()
        name = cursor.word()
        parameters = self._parameters() if cursor.token.text == "(" else ()
        directives: list[tuple[str, tuple[int, ...]]] = []
        while cursor.token.kind == "directive":
            directives.append(self._directive())
        if cursor.accept(";"):
            return Function(name, entry, parameters, returns, None, line, tuple(directives))
        self._location = None
        body = self._scope(0)
        return Function(name, entry, parameters, returns, body, line, tuple(directives))

    def _directive(self) -> tuple[str, tuple[int, ...]]:
        cursor = self._cursor
        name = cursor.take().text
        values: list[int] = []
        if cursor.token.kind == "string":
            cursor.take()
        while cursor.token.kind == "integer":
            values.append(cursor.integer())
            if not cursor.accept(","):
                break
        return name, tuple(values)

    def _parameters(self) -> tuple[Variable, ...]:
        cursor = self._cursor
        cursor.expect("(")
        found: list[Variable] = []
        if cursor.accept(")"):
            return ()
        while True:
            space = cursor.take().text
            if space not in (".param", ".reg"):
                raise cursor.error(f"expected a parameter, found {space!r}")
            found.append(self._variable(space[1:], False))
            if cursor.accept(")"):
                return tuple(found)
            cursor.expect(",")

    def _declaration(self, space: str, external: bool) -> list[Variable]:
        cursor = self._cursor
        first = self._variable(space, external)
        found = [first]
        while cursor.accept(","):
            found.append(self._declarator(space, first.type, first.align, first.vector, external))
        cursor.expect(";")
        return found

    def _variable(self, space: str, external: bool) -> Variable:
        """Read the types and one declarator."""
        cursor = self._cursor
        align, kind, vector = 0, "", 1
        while cursor.token.kind == "directive":
            text = cursor.take().text
            if text == ".align":
                align = cursor.integer()
            elif text == ".attribute":
                cursor.operand()
            elif text in (".v2", ".v4", ".v8"):
                vector = int(text[2:])
            elif text != ".ptr" and text not in _SPACES:
                kind = text[1:]
        if not kind:
            raise cursor.error("expected a type")
        return self._declarator(space, kind, align, vector, external)

    def _declarator(self, space: str, kind: str, align: int, vector: int, external: bool) -> Variable:
        cursor = self._cursor
        name = cursor.word()
        family, count, is_array = 0, 1, False
        if cursor.accept("<"):
            family = cursor.integer()
            cursor.expect(">")
        while cursor.accept("["):
            is_array = True
            count = 0 if cursor.token.text == "]" else count * cursor.integer()
            cursor.expect("]")
        if not (0 <= count < _LARGEST and 0 <= family < 1 << 20 and 0 <= align <= 1 << 16):
            raise cursor.error(f"size of {name!r} is out of range")
        initial = self._initial() if cursor.accept("=") else ()
        if is_array and count == 0 and initial:
            count = len(initial)
        return Variable(name, space, kind, count, align, is_array, vector, family, external, initial)

    def _initial(self, depth: int = 0) -> tuple[Operand, ...]:
        """Read an initializer; nested braces are flattened."""
        cursor = self._cursor
        if depth > _DEEPEST:
            raise cursor.error("initializers are nested too deeply")
        if not cursor.accept("{"):
            return (self._initial_value(),)
        values: list[Operand] = []
        while not cursor.accept("}"):
            values.extend(self._initial(depth + 1))
            if not cursor.accept(","):
                cursor.expect("}")
                break
        return tuple(values)

    def _initial_value(self) -> Operand:
        cursor = self._cursor
        if cursor.token.text == "generic" and cursor.following.text == "(":
            cursor.take()
            cursor.expect("(")
            value = cursor.operand()
            cursor.expect(")")
        else:
            value = cursor.operand()
        if isinstance(value, Name) and cursor.token.text in ("+", "-"):
            return Sum(value, cursor.integer() if cursor.accept("+") else -cursor.integer())
        return value

    def _scope(self, depth: int) -> Scope:
        cursor = self._cursor
        if depth > _DEEPEST:
            raise cursor.error("scopes are nested too deeply")
        cursor.expect("{")
        statements: list[Statement] = []
        while not cursor.accept("}"):
            statements.extend(self._statement(depth))
        return Scope(tuple(statements))

    def _statement(self, depth: int) -> list[Statement]:
        cursor = self._cursor
        token = cursor.token
        if token.text == "{":
            return [self._scope(depth + 1)]
        if token.kind == "directive":
            cursor.take()
            if token.text in _SPACES:
                return list(self._declaration(token.text[1:], False))
            if token.text == ".loc":
                self._read_location()
            else:
                cursor.skip_statement()
            return []
        if cursor.accept(";"):
            return []
        if token.kind == "word" and cursor.following.text == ":":
            return [self._label()]
        return [self._instruction()]

    def _label(self) -> Statement:
        cursor = self._cursor
        name = cursor.word()
        cursor.expect(":")
        if cursor.token.text == ".branchtargets":
            cursor.take()
            labels = [operand.text for operand in cursor.operands(";") if isinstance(operand, Name)]
            return BranchTargets(name, tuple(labels))
        if cursor.token.text in (".callprototype", ".calltargets"):
            cursor.skip_statement()
            return Prototype(name)
        return Label(name)

    def _read_location(self) -> None:
        """Read `.loc file line column[, function_name L[+n], inlined_at file line column]`."""
        cursor = self._cursor
        file, line, column = cursor.integer(), cursor.integer(), cursor.integer()
        outer: Location | None = None
        while cursor.accept(","):
            word = cursor.word()
            if word == "inlined_at":
                place = (cursor.integer(), cursor.integer(), cursor.integer())
                outer = self._places.get(place, Location(*place))
            elif word == "function_name":
                cursor.operand()
        self._location = Location(file, line, column, outer)
        self._places[file, line, column] = self._location

    def _instruction(self) -> Instruction:
        cursor = self._cursor
        guard, negated = None, False
        if cursor.accept("@"):
            negated = cursor.accept("!")
            guard = Name(cursor.word())
        line = cursor.token.line
        opcode = tuple(cursor.word().split("."))
        operands = cursor.operands(";")
        return Instruction(opcode, operands, line, self._location, guard, negated)


def constant(operand: Operand) -> int | None:
    """Return the value of an integer literal, None for anything else."""
    return operand.value if isinstance(operand, Integer) else None
