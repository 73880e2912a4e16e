"""One instruction as the families see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kernelskill.backends.emulated.ptx.syntax import Instruction, Operand
from kernelskill.backends.emulated.translate.refusal import Unsupported
from kernelskill.backends.emulated.translate.types import is_type


@dataclass(frozen=True, slots=True)
class Op:
    """An instruction with its opcode taken apart."""

    instruction: Instruction
    root: str
    modifiers: tuple[str, ...]
    """All parts after the root, types included."""
    types: tuple[str, ...]

    @classmethod
    def of(cls, instruction: Instruction) -> Op:
        """Take an instruction's opcode apart."""
        root, *rest = instruction.opcode
        return cls(instruction, root, tuple(rest), tuple(part for part in rest if is_type(part)))

    @property
    def text(self) -> str:
        """The opcode as written."""
        return self.instruction.text

    @property
    def type(self) -> str:
        """The last type of the opcode.

        Raises:
            Unsupported: It has none.
        """
        if not self.types:
            raise self.unsupported()
        return self.types[-1]

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The operands."""
        return self.instruction.operands

    def operand(self, index: int) -> Operand:
        """Return one operand.

        Raises:
            Unsupported: There are fewer.
        """
        if index >= len(self.operands):
            raise self.unsupported("too few operands")
        return self.operands[index]

    def has(self, *parts: str) -> bool:
        """Whether any of these modifiers is there."""
        return any(part in self.modifiers for part in parts)

    def pick(self, *parts: str) -> str:
        """Return the first of these modifiers that is there, or an empty text."""
        return next((part for part in parts if part in self.modifiers), "")

    def choice(self, table: dict[str, Any]) -> Any:
        """Return the table's value for the first modifier that it knows.

        Raises:
            Unsupported: It knows none.
        """
        for part in self.modifiers:
            if part in table:
                return table[part]
        raise self.unsupported()

    def unsupported(self, reason: str = "") -> Unsupported:
        """Return the refusal of this instruction by name."""
        what = f"instruction {self.text}" + (f" ({reason})" if reason else "")
        return Unsupported(what, self.instruction.location)
